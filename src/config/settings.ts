import type { Key, ValuesFile } from './keys.ts'
import { type Place, printPath, type Step } from './tree.ts'

/** The values files, the HOCON of the variables, and the entries of secrets. */
export type SettingFile = ValuesFile | 'canton' | 'secret'

/** A setting that was read and is well formed, with its origin. */
export type Setting = {
  readonly file: SettingFile
  readonly path: string
  /** How the operator wrote it: a key, a variable, a path of HOCON. */
  readonly name: string
  readonly value: unknown
  /** The text as written, for messages; undefined for lists, maps and secrets. */
  readonly raw?: string | undefined
  readonly place: Place
  /** The row of the table, when there is one. */
  readonly key: Key | undefined
  readonly secret: boolean
}

/** Blocks of which something is set, with the names of their members in the order of the sources. */
type Container = { readonly place: Place; readonly members: Set<string> }

export type Settings = {
  /** Later settings take the place of earlier ones. */
  put(setting: Omit<Setting, 'path'>, steps: readonly Step[]): void
  /** A block that is written, even if nothing valid stands in it. */
  open(file: SettingFile, steps: readonly Step[], place: Place): void
  get(file: SettingFile, path: string): Setting | undefined
  value<T>(file: SettingFile, path: string): T | undefined
  /** Where a setting or a block stands, if it is written at all. */
  placeOf(file: SettingFile, path: string): Place | undefined
  membersOf(file: SettingFile, path: string): readonly string[]
  /** An entry of a secret, by `<secret name>/<entry>`. */
  secret(path: string): Setting | undefined
  all(): Iterable<Setting>
  /** Settings that lost to a later one with another value, with the winner. */
  overridden(): readonly { readonly lost: Setting; readonly won: Setting }[]
}

export function newSettings(): Settings {
  const settings = new Map<string, Setting>()
  const containers = new Map<string, Container>()
  const overridden: { lost: Setting; won: Setting }[] = []

  function open(file: SettingFile, steps: readonly Step[], place: Place): void {
    for (let length = 1; length <= steps.length; length++) {
      const id = `${file}:${printPath(steps.slice(0, length))}`
      const container = containers.get(id) ?? { place, members: new Set() }
      containers.set(id, container)
      if (length < steps.length) container.members.add(String(steps[length]))
    }
  }

  return {
    put(setting, steps) {
      const won = { ...setting, path: printPath(steps) }
      const id = `${won.file}:${won.path}`
      const lost = settings.get(id)
      if (lost !== undefined && lost.value !== won.value) overridden.push({ lost, won })
      open(won.file, steps, won.place)
      settings.set(id, won)
    },
    open,
    get: (file, path) => settings.get(`${file}:${path}`),
    value: <T>(file: SettingFile, path: string) =>
      settings.get(`${file}:${path}`)?.value as T | undefined,
    placeOf: (file, path) =>
      settings.get(`${file}:${path}`)?.place ?? containers.get(`${file}:${path}`)?.place,
    membersOf: (file, path) => [...(containers.get(`${file}:${path}`)?.members ?? [])],
    secret: (path) => settings.get(`secret:${printPath([path])}`),
    all: () => settings.values(),
    overridden: () => overridden,
  }
}
