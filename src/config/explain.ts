import { CANTON_KEYS } from './canton-keys.ts'
import { block, type Key, VALUES_KEYS, type ValuesFile } from './keys.ts'
import { placeText } from './render.ts'
import { settingKey } from './rule-context.ts'
import { maskText } from './secret.ts'
import type { Setting, Settings } from './settings.ts'

/** Longer values are cut in the table. */
const VALUE_LENGTH_MAX = 60

export type Effective = {
  readonly file: string
  readonly path: string
  readonly value: string
  /** File and line, variable, flag, or `default`. */
  readonly origin: string
}

/** Every effective setting with its origin, in the order of the tables; secrets are masked. */
export function effectiveSettings(
  settings: Settings,
  secretTexts: ReadonlySet<string>,
): Effective[] {
  const found = [...settings.all()].filter(isShown)
  const rows: Effective[] = []
  for (const file of ['validator', 'participant', 'postgres'] as const) {
    const here = found.filter((setting) => setting.file === file)
    for (const key of uniqueKeys(file)) {
      const set = here.filter((setting) => keyPathOf(setting) === key.path)
      rows.push(...set.map((setting) => effective(setting, secretTexts)))
      const isDefault =
        set.length === 0 && key.reference !== true && isInEffect(settings, file, key)
      if (isDefault && key.default !== undefined)
        rows.push({ file, path: key.path, value: key.default, origin: 'default' })
    }
  }
  const alone = found.filter(
    ({ file, key }) =>
      file === 'canton' && !CANTON_KEYS.some((row) => row === key && row.sets !== undefined),
  )
  const secrets = found.filter(({ file }) => file === 'secret')
  return [
    ...rows,
    ...alone.map((setting) => effective(setting, secretTexts)),
    ...secrets.map((setting) => effective(setting, secretTexts)),
  ]
}

/** Blocks that hold without being written. */
const STANDING_BLOCKS = ['annals', 'migration', 'metrics']

/** A default counts where its block is in use: without a database block, say, no host does. */
function isInEffect(settings: Settings, file: ValuesFile, { path }: Key): boolean {
  const block = path.split('.')[0] as string
  if (path.includes('*')) return false
  if (settings.placeOf(file, block) !== undefined) return true
  return file !== 'postgres' && (block === path || STANDING_BLOCKS.includes(block))
}

function isShown({ value, path }: Setting): boolean {
  return value !== undefined && !path.startsWith('additionalEnvVars')
}

function uniqueKeys(file: ValuesFile): Key[] {
  return VALUES_KEYS[file].filter(
    ({ kind, path }) =>
      kind !== block && !path.endsWith('.*') && !path.startsWith('additionalEnvVars'),
  )
}

/** The row that a setting belongs to, with its map keys turned into `*` again. */
function keyPathOf(setting: Setting): string {
  if (setting.key !== undefined && !setting.key.path.startsWith('canton.')) return setting.key.path
  const sets = CANTON_KEYS.find((row) => row === setting.key)?.sets
  if (sets === undefined) return setting.path
  const isList = setting.key?.path.endsWith('[]') === true
  return isList ? `${sets.path}[]` : sets.path
}

function effective(setting: Setting, secretTexts: ReadonlySet<string>): Effective {
  const where = placeText(setting.place)
  const name = settingKey(setting)
  const inFile = setting.place.source.kind === 'file' && setting.place.source.variable !== undefined
  return {
    file: setting.file === 'canton' ? 'ADDITIONAL_CONFIG' : setting.file,
    path: setting.path.replaceAll(/^"|"$/g, ''),
    value: setting.secret ? '****' : shortValue(setting, secretTexts),
    origin: inFile
      ? `${where} (${setting.place.source.variable})`
      : name.startsWith('canton.') && setting.file !== 'canton'
        ? `${where} (${name})`
        : where,
  }
}

function shortValue({ raw, value }: Setting, secretTexts: ReadonlySet<string>): string {
  const text = maskText(
    raw ??
      (Array.isArray(value)
        ? value.length === 0
          ? '[]'
          : value.join(', ')
        : JSON.stringify(value)),
    secretTexts,
  )
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > VALUE_LENGTH_MAX ? `${line.slice(0, VALUE_LENGTH_MAX)}…` : line
}

export function renderEffective(rows: readonly Effective[]): string {
  const lines: string[] = []
  let file = ''
  const width = Math.min(70, Math.max(...rows.map(({ path }) => path.length)))
  for (const row of rows) {
    if (row.file !== file) {
      file = row.file
      lines.push('', `# ${file}`)
    }
    lines.push(`${row.path.padEnd(width)}  ${row.value.padEnd(24)}  ${row.origin}`.trimEnd())
  }
  return `${lines.slice(1).join('\n')}\n`
}
