import { shown } from './check-tree.ts'
import type { ValuesFile } from './keys.ts'
import type { Problem, Severity } from './problem.ts'
import type { Setting, SettingFile, Settings } from './settings.ts'
import { keyName, stepsOf } from './shape.ts'
import type { Sources } from './sources.ts'
import { isAbsent, type Place } from './tree.ts'
import { VARIABLES } from './variables.ts'

/** The two apps that have values of their own. */
export const APPS = ['validator', 'participant'] as const
export type App = (typeof APPS)[number]

export function otherApp(app: App): App {
  return app === 'validator' ? 'participant' : 'validator'
}

export type Onboarded = 'yes' | 'no' | 'unknown'

/** What a rule sees: the settings, and where to tell what does not hold. */
export type RuleContext = {
  readonly settings: Settings
  readonly sources: Sources
  readonly problems: Problem[]
  readonly onboarded: Onboarded
  /** Whether any of the network parameters is given. */
  readonly joining: boolean
}

/** What a problem is about: a setting, or a place where one is missing. */
export type Subject = {
  readonly key: string
  readonly path: string
  readonly place?: Place | undefined
  /** The value as written. */
  readonly found?: string | undefined
}

export type Told = {
  readonly rule: string
  readonly about: Subject
  readonly message: string
  readonly hint?: string
}

export function tell(
  context: { problems: Problem[] },
  severity: Severity,
  { rule, about, message, hint }: Told,
): void {
  context.problems.push({
    severity,
    rule,
    key: about.key,
    path: about.path,
    message,
    ...(about.place === undefined ? {} : { place: about.place }),
    ...(hint === undefined ? {} : { hint }),
    ...(about.found === undefined ? {} : { found: shown(about.found) }),
  })
}

/** The name under which the operator wrote a setting, map keys left out. */
export function settingKey(setting: Setting): string {
  if (VARIABLES.some(({ name }) => name === setting.name)) return setting.name
  return setting.key === undefined ? setting.name : keyName(stepsOf(setting.key.path))
}

export function subjectOf(setting: Setting): Subject {
  return {
    key: settingKey(setting),
    path: setting.name,
    place: setting.place,
    found: setting.raw,
  }
}

/** The setting at a path, or the nearest thing that can be pointed at. */
export function subjectAt(context: RuleContext, file: SettingFile, path: string): Subject {
  const setting = context.settings.get(file, path)
  if (setting !== undefined) return subjectOf(setting)
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('.')))
  const whole = context.sources.values[file as ValuesFile]?.place
  const place =
    context.settings.placeOf(file, path) ??
    context.settings.placeOf(file, parent) ??
    (whole && { ...whole, line: 1, column: 1, length: 0 })
  return { key: keyName(path.replaceAll(/\."[^"]*"/g, '').split('.')), path, place }
}

/** How a sentence calls a setting: a variable is followed by the key that it stands for. */
export function nameOf(setting: Setting): string {
  const key = settingKey(setting)
  return key === setting.name && key !== setting.path && setting.file !== 'canton'
    ? `${key} (${setting.path})`
    : key
}

/** Whether something is written, be it well formed, badly formed or mistyped. */
export function isWritten(
  context: Pick<RuleContext, 'settings' | 'problems'>,
  file: SettingFile,
  path: string,
): boolean {
  if (context.settings.placeOf(file, path) !== undefined) return true
  return isMalformed(context, file, path)
}

/** Whether something is written, but could not be read. */
export function isMalformed(
  { problems }: Pick<RuleContext, 'problems'>,
  file: SettingFile,
  path: string,
): boolean {
  const variables = VARIABLES.filter(({ sets }) =>
    sets.some((target) => target === `${file}:${path}`),
  )
  return problems.some(
    (problem) =>
      (problem.file === file && [problem.key, problem.path, problem.meant].includes(path)) ||
      (problem.severity === 'error' && variables.some(({ name }) => name === problem.key)),
  )
}

/** Whether a file was given and could be read, so that something can be missing in it. */
export function isReadable(context: RuleContext, file: ValuesFile): boolean {
  return context.sources.given.has(file) && !context.sources.broken.has(file)
}

/** Where a top-level key stands in a values file, whatever the environment says. */
export function placeInValues(
  { sources }: Pick<RuleContext, 'sources'>,
  file: ValuesFile,
  name: string,
): Place | undefined {
  const values = sources.values[file]
  const member = values?.type === 'map' ? values.members.get(name) : undefined
  return isAbsent(member?.entry) ? undefined : member?.keyPlace
}

/** PostgreSQL is chosen by a persistence block or by a host; a password alone chooses nothing. */
export function usesPostgres(
  context: Pick<RuleContext, 'settings' | 'sources'>,
  app: App,
): boolean {
  const host = context.settings.get(app, 'persistence.host')
  return placeInValues(context, app, 'persistence') !== undefined || host !== undefined
}
