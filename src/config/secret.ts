import { inspect } from 'node:util'

const MASK = '****'

/** A secret prints masked wherever it is printed; only `reveal()` gives the text. */
export type Secret = {
  reveal(): string
  toString(): string
  toJSON(): string
}

export function secretOf(text: string): Secret {
  const masked = () => MASK
  const secret = {
    reveal: () => text,
    toString: masked,
    toJSON: masked,
    [inspect.custom]: masked,
  }
  for (const name of ['reveal', 'toString', 'toJSON', inspect.custom] as const) {
    Object.defineProperty(secret, name, { enumerable: false })
  }
  return Object.freeze(secret)
}

/** Shorter secrets are words of the language; replacing them everywhere would hide the message. */
const SECRET_LENGTH_REPLACED_MIN = 6

const SECRET_WORD =
  /pass(?:word|wd|phrase)?|pwd|secret|token|credential|private[-_]?key|api[-_]?key/i

export function looksSecret(name: string): boolean {
  return SECRET_WORD.test(name)
}

/**
 * Text that an operator wrote, safe to print: known secrets, the user part of addresses, and
 * whatever is assigned to a name that sounds secret are masked.
 */
export function maskText(text: string, secrets: Iterable<string>): string {
  let masked = text
  for (const secret of secrets) {
    if (secret.length >= SECRET_LENGTH_REPLACED_MIN) masked = masked.replaceAll(secret, MASK)
  }
  masked = masked.replace(/:\/\/[^/\s"']*@/g, `://${MASK}@`)
  return masked.replace(
    /((?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|api[-_]?key)[\w.-]*["']?\s*[=:]\s*)(?!\s|[[{]|$)("[^"]*"?|'[^']*'?|[^\s,}]+)/gi,
    (whole: string, name: string, value: string) =>
      isHarmlessValue(name, value) ? whole : `${name}${MASK}`,
  )
}

/** `secretName: postgres-secrets` names a secret and tells nothing; `optional: false` even less. */
function isHarmlessValue(name: string, value: string): boolean {
  return /(?:name|from|ref)["']?\s*[=:]\s*$/i.test(name) || /^(?:true|false|null|~)$/.test(value)
}
