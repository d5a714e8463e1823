/** Where a text came from: a file, a variable, a secret. Never shown in part when it is secret. */
export type Source = {
  readonly name: string
  readonly kind: 'file' | 'variable' | 'secret' | 'flag'
  readonly text: string
  readonly secret: boolean
  /** The variable that the text is the value of, when it stands in a file. */
  readonly variable?: string
}

/** A spot in a source, for a caret: lines and columns count from one. Length 0 means the whole. */
export type Place = {
  readonly source: Source
  readonly line: number
  readonly column: number
  readonly length: number
}

/** A text and where it stands. */
export type Located = { readonly text: string; readonly place: Place }

export type Scalar = string | number | boolean | null

export type ScalarEntry = {
  readonly type: 'scalar'
  readonly value: Scalar
  /** The text as written, without quotes. */
  readonly raw: string
  /** Written without quotes. */
  readonly plain: boolean
  readonly place: Place
}
export type ListEntry = {
  readonly type: 'list'
  readonly items: readonly Entry[]
  readonly place: Place
}
export type MapEntry = {
  readonly type: 'map'
  readonly members: ReadonlyMap<string, Member>
  readonly place: Place
}
export type Member = { readonly keyPlace: Place; readonly entry: Entry }

/** What YAML and HOCON have in common: a tree in which every value knows where it stands. */
export type Entry = ScalarEntry | ListEntry | MapEntry

/** A later file wins: maps merge deeply, lists and scalars are replaced, null removes, as charts are merged. */
export function mergeEntries(base: Entry | undefined, over: Entry): Entry {
  if (base?.type !== 'map' || over.type !== 'map') return over
  const members = new Map(base.members)
  for (const [name, member] of over.members) {
    const below = members.get(name)
    if (below !== undefined && isAbsent(member.entry)) members.delete(name)
    else members.set(name, { ...member, entry: mergeEntries(below?.entry, member.entry) })
  }
  return { type: 'map', members, place: base.place }
}

export function isAbsent(entry: Entry | undefined): boolean {
  return entry === undefined || (entry.type === 'scalar' && entry.value === null)
}

export type Step = string | number

/** A path as a reader would write it: `walletSweep."alice::1220ab".receiver`, `users[0]`. */
export function printPath(steps: readonly Step[]): string {
  let text = ''
  for (const step of steps) {
    if (typeof step === 'number') text += `[${step}]`
    else text += (text === '' ? '' : '.') + (/^[\w-]+$/.test(step) ? step : JSON.stringify(step))
  }
  return text
}

/** Line and column of an offset, counted from one. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  let line = 1
  let start = 0
  for (let next = text.indexOf('\n'); next !== -1 && next < offset; ) {
    line++
    start = next + 1
    next = text.indexOf('\n', start)
  }
  return { line, column: Math.max(1, offset - start + 1) }
}
