import { block, type Key, VALUES_KEYS, type ValuesFile } from './keys.ts'
import { isLeaf, type Shape, shapeOf } from './shape.ts'

/**
 * Keys that the reference configuration shows commented out: alternatives to others, and what only
 * some operators need. All other keys with an example are in use in it.
 */
const ALTERNATIVES: Readonly<Record<ValuesFile, readonly string[]>> = {
  validator: [
    'decentralizedSynchronizerUrl',
    'scanClient',
    'synchronizer',
    'validatorWalletUser',
    'deduplicationDuration',
    'logLevel',
    'additionalJvmOptions',
    'additionalEnvVars',
    'livenessProbeInitialDelaySeconds',
    'metrics',
    'annals',
    'db',
  ],
  participant: [
    'additionalJvmOptions',
    'additionalEnvVars',
    'livenessProbeInitialDelaySeconds',
    'metrics',
    'logLevel',
    'db',
  ],
  postgres: [],
}

const SAMPLE_PARTY =
  '"acme-validator-1::1220a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4"'
const COMMENT_WIDTH = 96

const TITLES: Readonly<Record<ValuesFile, string>> = {
  validator: 'Validator values: identity, network, wallet and automations.',
  participant: 'Participant values: ledger API and its database.',
  postgres: 'Database values: the server and its volume.',
}

/** A commented values file that passes the check. */
export function exampleOf(file: ValuesFile): string {
  const lines = [
    `# ${TITLES[file]}`,
    `# Check it with: annals check ${{ validator: '-f', participant: '-p', postgres: '--postgres-values' }[file]} FILE`,
  ]
  for (const [name, shape] of shapeOf(VALUES_KEYS[file]).members) {
    const body = renderMember(name, shape, 0)
    if (body.length === 0) continue
    const off = ALTERNATIVES[file].includes(name)
    lines.push('', ...comment(docOf(shape), 0), ...(off ? body.map((line) => `# ${line}`) : body))
  }
  return `${lines.join('\n')}\n`
}

/** The lines of a key and of everything under it that has an example. */
function renderMember(name: string, shape: Shape, depth: number): string[] {
  const indent = '  '.repeat(depth)
  const key = shape.key ?? shape.item?.key
  if (key?.reference === true) return []
  if (shape.item !== undefined) {
    const example = shape.item.key?.example
    if (isLeaf(shape.item))
      return example === undefined ? [] : [`${indent}${name}:`, `${indent}  - ${example}`]
    const members = renderMembers(shape.item, depth + 2)
    if (members.length === 0) return []
    const [first = '', ...rest] = members
    return [`${indent}${name}:`, `${indent}  - ${first.trimStart()}`, ...rest]
  }
  if (shape.keyed !== undefined) {
    return [
      `${indent}${name}:`,
      `${indent}  ${SAMPLE_PARTY}:`,
      ...renderMembers(shape.keyed, depth + 2),
    ]
  }
  if (isLeaf(shape) && key?.kind !== block) {
    return key?.example === undefined ? [] : [`${indent}${name}: ${key.example}`]
  }
  const members = renderMembers(shape, depth + 1)
  return members.length === 0 ? [] : [`${indent}${name}:`, ...members]
}

function renderMembers(shape: Shape, depth: number): string[] {
  return [...shape.members].flatMap(([name, member]) => {
    const body = renderMember(name, member, depth)
    // The first line of a list item cannot be a comment, so that items carry none.
    const silent = shape.steps.at(-1) === '[]'
    return body.length === 0 || silent ? body : [...comment(docOf(member), depth), ...body]
  })
}

function docOf(shape: Shape): string {
  const key: Key | undefined = shape.key ?? shape.item?.key
  if (key === undefined) return ''
  return key.default === undefined ? key.doc : `${key.doc} Default: ${key.default}.`
}

function comment(text: string, depth: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.replaceAll('`', '').split(' ')) {
    if (line !== '' && line.length + word.length >= COMMENT_WIDTH - depth * 2) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  if (line !== '') lines.push(line)
  return lines.map((row) => `${'  '.repeat(depth)}# ${row}`)
}
