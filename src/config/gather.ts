import { CANTON_KEYS, CLOSED_BLOCKS, PARTICIPANT_APP, VALIDATOR_APP } from './canton-keys.ts'
import { checkTree, shown, type TreeCheck } from './check-tree.ts'
import { HoconError, type HoconTree, mergeInto, parseHocon, resolveHocon } from './hocon.ts'
import { FILE_TITLES, type Key, VALUES_KEYS, type ValuesFile } from './keys.ts'
import { nearestWord } from './nearest.ts'
import type { Problem } from './problem.ts'
import { looksSecret } from './secret.ts'
import { newSettings, type SettingFile, type Settings } from './settings.ts'
import { keyName, type Shape, shapeOf, stepsOf } from './shape.ts'
import type { Sources } from './sources.ts'
import type { Entry, Located, Place, Source } from './tree.ts'
import { HOCON_PREFIX, SECRET_ENTRIES, VARIABLES, type Variable } from './variables.ts'

/** How the files of the reference images call the trusted scan. */
const REFERENCE_SCAN = '_scan.admin-api.address'
/** Linux passes no longer variable to a process. */
const VARIABLE_LENGTH_MAX = 128 * 1024

export type Gathered = {
  readonly settings: Settings
  readonly problems: Problem[]
  /** Texts that must not be printed, wherever they turn up. */
  readonly secretTexts: ReadonlySet<string>
}

/**
 * All sources as one set of settings. Later wins: values, variables of the values, environment, HOCON
 * (which the reference loads last), secret files, flags.
 */
export function gatherSettings(sources: Sources, lenient: boolean): Gathered {
  const settings = newSettings()
  const problems: Problem[] = [...sources.problems]
  const secretTexts = new Set<string>()
  const gathering: Gathering = { sources, settings, problems, secretTexts, lenient }
  for (const file of ['validator', 'participant', 'postgres'] as const)
    gatherValues(gathering, file)
  const listed = listedVariables(gathering)
  const environment = [...sources.variables].map(([name, located]) => ({ name, ...located }))
  const known = new Set(environment.map(({ name }) => name))
  const variables = [...listed.filter(({ name }) => !known.has(name)), ...environment]
  for (const variable of VARIABLES) {
    for (const { name, text, place } of variables) {
      if (name === variable.name) gatherVariable(gathering, variable, { text, place })
    }
  }
  gatherHocon(gathering, variables)
  gatherSecrets(gathering)
  gatherFlags(gathering)
  for (const setting of settings.all()) {
    if (setting.secret) secretTexts.add(String(setting.value))
  }
  return { settings, problems, secretTexts }
}

type Gathering = {
  sources: Sources
  settings: Settings
  problems: Problem[]
  secretTexts: Set<string>
  lenient: boolean
}

function gatherValues(gathering: Gathering, file: ValuesFile): void {
  const tree = gathering.sources.values[file]
  if (tree?.type !== 'map') return
  checkTree(
    {
      ...treeCheck(gathering, file),
      typed: true,
      unknown: () => 'error',
      elsewhere: (name) => otherFile(file, name),
    },
    tree,
    shapeOf(VALUES_KEYS[file]),
  )
}

function treeCheck(
  gathering: Gathering,
  file: SettingFile,
): Omit<TreeCheck, 'typed' | 'unknown' | 'elsewhere'> {
  const { settings, problems, lenient } = gathering
  return { file, settings, problems, lenient }
}

function otherFile(file: ValuesFile, name: string): string | undefined {
  for (const other of ['validator', 'participant', 'postgres'] as const) {
    const known = VALUES_KEYS[other].some(({ path }) => keyName(stepsOf(path)) === name)
    if (other !== file && known) return `The key belongs to the ${FILE_TITLES[other]}.`
  }
  return undefined
}

type NamedText = { name: string; text: string; place: Place }

/** The variables that the values files list, with texts from secrets where they say so. */
function listedVariables(gathering: Gathering): NamedText[] {
  const { settings, sources } = gathering
  const variables: NamedText[] = []
  for (const file of ['validator', 'participant'] as const) {
    const items = settings.value<unknown[]>(file, 'additionalEnvVars') ?? []
    for (const index of items.keys()) {
      const at = `additionalEnvVars[${index}]`
      const name = settings.value<string>(file, `${at}.name`)
      if (name === undefined) continue
      const value = settings.get(file, `${at}.value`)
      const secret = settings.value<string>(file, `${at}.valueFrom.secretKeyRef.name`)
      const entry = settings.value<string>(file, `${at}.valueFrom.secretKeyRef.key`)
      // As in the charts, where a reference beside a text wins.
      if (secret !== undefined && entry !== undefined) {
        const located = sources.secrets?.get(`${secret}/${entry}`)
        if (located !== undefined) {
          gathering.secretTexts.add(located.text)
          const source: Source = { ...located.place.source, variable: name }
          variables.push({ name, text: located.text, place: { ...located.place, source } })
        }
      } else if (value !== undefined) {
        if (looksSecret(name)) gathering.secretTexts.add(String(value.value))
        const source: Source = { ...value.place.source, variable: name }
        variables.push({ name, text: String(value.value), place: { ...value.place, source } })
      }
      noteUselessVariable(gathering, name, settings.get(file, `${at}.name`)?.place as Place)
    }
  }
  const additional = settings.get('validator', 'additionalConfig')
  if (additional !== undefined) {
    const name = `${HOCON_PREFIX}_OTHER`
    const source: Source = { ...additional.place.source, variable: name }
    variables.push({ name, text: String(additional.value), place: { ...additional.place, source } })
  }
  return variables
}

function noteUselessVariable(gathering: Gathering, name: string, place: Place): void {
  if (name.startsWith(HOCON_PREFIX) || VARIABLES.some((variable) => variable.name === name)) return
  const near = nearestWord(
    name,
    VARIABLES.map((variable) => variable.name),
  )
  gathering.problems.push({
    severity: near === undefined ? 'notice' : 'warning',
    rule: 'unknown-variable',
    key: name,
    path: name,
    place,
    message: `The variable ${name} is unknown to this node and has no effect.`,
    ...(near === undefined ? {} : { hint: `Did you mean ${near}?` }),
  })
}

function gatherVariable(gathering: Gathering, variable: Variable, { text, place }: Located): void {
  if (text === '' && variable.emptyCounts !== true) return
  const source: Source = {
    ...place.source,
    secret: place.source.secret || variable.secret === true,
  }
  const at = { ...place, source }
  const secret = variable.secret === true
  if (secret && text !== '') gathering.secretTexts.add(text)
  const reading =
    text.length > VARIABLE_LENGTH_MAX ? { reason: 'it is too long' } : variable.kind.fromText(text)
  if ('reason' in reading) {
    const key = variable.sets[0]?.split(':')[1]
    gathering.problems.push({
      severity: variable.common === true ? 'warning' : 'error',
      rule: `kind-${variable.kind.name.replaceAll(' ', '-')}`,
      key: variable.name,
      path: variable.name,
      place: at,
      message: `${variable.name} (${key}) is wrong: ${reading.reason}.`,
      allowed: variable.kind.allowed,
      hint: `${variable.name}=${variable.example}`,
      ...(secret ? {} : { found: shown(text) }),
    })
    return
  }
  for (const target of variable.sets) {
    const [file, path] = target.split(':') as [SettingFile, string]
    const key = file === 'secret' ? undefined : keyOf(file as ValuesFile, path)
    gathering.settings.put(
      {
        file,
        name: variable.name,
        value: reading.value,
        raw: secret ? undefined : text,
        place: at,
        key,
        secret,
      },
      file === 'secret' ? [path] : path.split('.'),
    )
  }
}

function keyOf(file: ValuesFile, path: string): Key | undefined {
  return VALUES_KEYS[file].find((key) => key.path === path)
}

/** Every variable on its own, so that a mistake in one is told as its own; then one tree. */
function gatherHocon(gathering: Gathering, variables: readonly NamedText[]): void {
  const { problems } = gathering
  const trees: HoconTree[] = []
  const hocon = variables.filter(({ name }) => name.startsWith(HOCON_PREFIX))
  for (const { name, text, place } of hocon.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const source: Source = { ...place.source, name, kind: 'variable', text }
    const origin = place.source.kind === 'variable' ? { ...place, source } : place
    try {
      if (text.length > VARIABLE_LENGTH_MAX) throw new HoconError('the text is too long', origin)
      trees.push(parseHocon(source, origin))
    } catch (error) {
      if (!(error instanceof HoconError)) throw error
      problems.push(hoconProblem(name, error))
    }
  }
  const [first, ...rest] = trees
  if (first === undefined) return
  for (const tree of rest) mergeInto(first, tree)
  try {
    const texts = new Map(variables.map(({ name, text }) => [name, text]))
    const scan = gathering.settings.value<string>('validator', 'scanAddress')
    if (scan !== undefined) texts.set(REFERENCE_SCAN, scan)
    const { tree, unresolved } = resolveHocon(first, (name) => texts.get(name))
    for (const { name, place } of unresolved) problems.push(unresolvedProblem(name, place))
    checkHocon(gathering, tree)
  } catch (error) {
    if (!(error instanceof HoconError)) throw error
    problems.push(hoconProblem(error.place.source.variable ?? error.place.source.name, error))
  }
}

function hoconProblem(name: string, error: HoconError): Problem {
  return {
    severity: 'error',
    rule: 'hocon',
    key: name,
    path: name,
    place: error.place,
    message: `${name} is not HOCON: ${error.message}. All settings of such variables are lost then.`,
  }
}

/** Names that begin with an underscore are defined by the files of the reference images. */
function unresolvedProblem(name: string, place: Place): Problem {
  const variable = place.source.variable ?? place.source.name
  return {
    severity: name.startsWith('_') ? 'warning' : 'error',
    rule: 'substitution',
    key: variable,
    path: variable,
    place,
    message: `${variable} refers to ${name}, which no setting and no variable defines.`,
    hint: `Define ${name}, or write \${?${name}} if it may be absent.`,
  }
}

function checkHocon(gathering: Gathering, tree: Entry): void {
  if (tree.type !== 'map') return
  const found: Problem[] = []
  checkTree(
    {
      ...treeCheck(gathering, 'canton'),
      problems: found,
      typed: false,
      unknown: hoconUnknown,
      elsewhere: () => undefined,
    },
    tree,
    shapeOf(CANTON_KEYS),
  )
  for (const problem of found) {
    const variable = problem.place?.source.variable
    gathering.problems.push(
      variable === undefined ? problem : { ...problem, message: `${variable}: ${problem.message}` },
    )
  }
}

/**
 * The reference has far more settings than this node. An unknown one is refused where the reference
 * refuses it, and where it looks like a mistyped known one; elsewhere it is told to have no effect.
 */
function hoconUnknown(parent: Shape, _name: string, near: string | undefined): 'error' | 'warning' {
  const path = keyName(parent.steps)
  const closed = CLOSED_BLOCKS.some(
    (closedPath) => path === closedPath || path.startsWith(`${closedPath}.`),
  )
  const app = [VALIDATOR_APP, PARTICIPANT_APP].some((name) => name.startsWith(path))
  return closed || (near !== undefined && (app || path !== '')) ? 'error' : 'warning'
}

/** Entries of the secrets with fixed names are checked; others are taken by the rules that name them. */
function gatherSecrets(gathering: Gathering): void {
  const { sources, settings, problems } = gathering
  for (const [path, { text, place }] of sources.secrets ?? []) {
    if (text !== '') gathering.secretTexts.add(text)
    const row = SECRET_ENTRIES.find(({ secret, entry }) => path === `${secret}/${entry}`)
    const reading = (row?.kind.fromText ?? ((value: string) => ({ value })))(text)
    if ('reason' in reading) {
      problems.push({
        severity: 'error',
        rule: 'secret-entry',
        key: path,
        path,
        place,
        message: `The entry ${path} is wrong: ${reading.reason}.`,
        allowed: row?.kind.allowed ?? '',
      })
    } else {
      settings.put(
        { file: 'secret', name: path, value: reading.value, place, key: undefined, secret: true },
        [path],
      )
    }
  }
}

function gatherFlags(gathering: Gathering): void {
  for (const [path, { flag, value }] of Object.entries(gathering.sources.request.flags ?? {})) {
    const key = keyOf('validator', path)
    const source: Source = { name: flag, kind: 'flag', text: `${flag} ${value}`, secret: false }
    const place = { source, line: 1, column: flag.length + 2, length: Math.max(1, value.length) }
    const reading = key?.kind.fromText(value) ?? { reason: 'there is no such setting' }
    if ('reason' in reading) {
      gathering.problems.push({
        severity: 'error',
        rule: 'flag',
        key: path,
        path: flag,
        place,
        found: shown(value),
        message: `${flag} is wrong: ${reading.reason}.`,
        allowed: key?.kind.allowed ?? '',
      })
    } else {
      gathering.settings.put(
        { file: 'validator', name: flag, value: reading.value, place, key, secret: false },
        path.split('.'),
      )
    }
  }
}
