import { createHash, randomBytes } from 'node:crypto'

/** What an onboarding secret says: who issued it, the secret itself, and for whom it is. */
export type OnboardingSecret = {
  /** Undefined for a bare secret, which says nothing about who issued it. */
  sponsoringSv: string | undefined
  secret: string
  partyHint: string | undefined
}

/** As on the deployed network. */
const SECRET_BYTES = 32

export function newSecret(sponsoringSv: string, partyHint: string | undefined): OnboardingSecret {
  return { sponsoringSv, secret: randomBytes(SECRET_BYTES).toString('base64'), partyHint }
}

/** The text that the sponsor hands out: base64 of a JSON object. */
export function encodeSecret({ sponsoringSv, secret, partyHint }: OnboardingSecret): string {
  const json = JSON.stringify({ sponsoringSv, secret, partyHint: partyHint ?? null })
  return Buffer.from(json).toString('base64')
}

/** Never fails: whatever is not of the form above is a bare secret. */
export function decodeSecret(text: string): OnboardingSecret {
  const bare = text.trim()
  try {
    const json = JSON.parse(Buffer.from(bare, 'base64').toString('utf8')) as {
      [name: string]: unknown
    }
    const { sponsoringSv, secret, partyHint } = json
    if (typeof sponsoringSv === 'string' && typeof secret === 'string') {
      return {
        sponsoringSv,
        secret,
        partyHint: typeof partyHint === 'string' ? partyHint : undefined,
      }
    }
  } catch {
    // A bare secret.
  }
  return { sponsoringSv: undefined, secret: bare, partyHint: undefined }
}

/** What is kept of a secret. It has 256 random bits, so that nobody finds it from its hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
