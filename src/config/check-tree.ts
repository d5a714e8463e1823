import type { CantonKey } from './canton-keys.ts'
import { block, freeList, freeMap, type Key } from './keys.ts'
import { anything, boolean, type Kind, type Reading } from './kinds.ts'
import { nearestWord } from './nearest.ts'
import type { Problem, Severity } from './problem.ts'
import { maskText } from './secret.ts'
import type { SettingFile, Settings } from './settings.ts'
import { isLeaf, keyName, type Shape } from './shape.ts'
import {
  type Entry,
  isAbsent,
  type MapEntry,
  type Place,
  printPath,
  type ScalarEntry,
  type Step,
} from './tree.ts'

/** Masking looks at the beginning of a text alone, of which far less is shown. */
const MASKED_LENGTH_MAX = 2000
/** What is shown of a value; longer ones are cut. */
const SHOWN_LENGTH_MAX = 80

export type TreeCheck = {
  readonly file: SettingFile
  readonly settings: Settings
  readonly problems: Problem[]
  readonly lenient: boolean
  /** Whether YAML types count, or every scalar is text. */
  readonly typed: boolean
  /** Whether an unknown member is refused, told, or passed over. */
  readonly unknown: (shape: Shape, name: string, near: string | undefined) => Severity
  /** What to say of a key that another file knows. */
  readonly elsewhere: (name: string) => string | undefined
}

/** Checks a tree against a table: well-formed values become settings, everything else a problem. */
export function checkTree(check: TreeCheck, tree: MapEntry, shape: Shape): void {
  checkMap(check, tree, shape, { steps: [], at: tree.place, quiet: false })
}

type At = { steps: readonly Step[]; at: Place; quiet: boolean }

function checkEntry(check: TreeCheck, entry: Entry, shape: Shape, at: At): void {
  const reference = shape.key?.reference === true
  if (reference && !at.quiet) noteReference(check, shape, at)
  const inside = { ...at, quiet: at.quiet || reference }
  const kind = shape.key?.kind
  if (kind === freeMap || kind === freeList || kind === anything)
    checkFree(check, entry, shape, inside)
  else if (shape.item !== undefined) checkList(check, entry, shape, inside)
  else if (!isLeaf(shape) || kind === block) checkMap(check, entry, shape, inside)
  else checkLeaf(check, entry, shape, inside)
}

function checkMap(check: TreeCheck, entry: Entry, shape: Shape, at: At): void {
  if (entry.type !== 'map') {
    report(check, shape, at, entry, 'it is not a map of keys to values', 'a map')
    return
  }
  if (at.steps.length > 0) check.settings.open(check.file, at.steps, at.at)
  for (const [name, member] of entry.members) {
    const next = shape.members.get(name) ?? shape.keyed
    const steps = [...at.steps, name]
    if (next === undefined) {
      reportUnknown(check, shape, { ...at, steps, at: member.keyPlace }, name)
    } else if (!isAbsent(member.entry) || (check.typed && next === shape.keyed)) {
      // A key of ours without a value is left out; one that the operator chose is forgotten.
      if (next === shape.keyed)
        checkMapKey(check, next, name, { ...at, steps, at: member.keyPlace })
      checkEntry(check, member.entry, next, { ...at, steps, at: member.keyPlace })
    }
  }
  for (const [name, next] of shape.members) {
    const required = (next.key ?? next.item?.key)?.required === 'block'
    if (required && isAbsent(entry.members.get(name)?.entry))
      reportMissing(check, next, { ...at, steps: [...at.steps, name] })
  }
}

function checkMapKey(check: TreeCheck, shape: Shape, name: string, at: At): void {
  const kind = shape.key?.kind
  const reading = kind?.fromText(name)
  if (reading === undefined || 'value' in reading) return
  check.problems.push({
    severity: 'error',
    file: check.file,
    rule: 'map-key',
    key: keyName(shape.steps),
    path: printPath(at.steps),
    place: at.at,
    found: shown(name),
    allowed: kind?.allowed ?? '',
    message: `The key "${shown(name)}" of ${keyName(shape.steps)} is wrong: ${reading.reason}.`,
  })
}

function checkList(check: TreeCheck, entry: Entry, shape: Shape, at: At): void {
  const item = shape.item as Shape
  const list = check.typed ? entry : numberedToList(entry)
  if (list.type !== 'list') {
    report(
      check,
      item,
      at,
      entry,
      'it is not a list',
      `a list, each item ${item.key?.kind.allowed ?? 'a map'}`,
    )
    return
  }
  check.settings.open(check.file, at.steps, at.at)
  const values: unknown[] = []
  list.items.forEach((member, index) => {
    const steps = [...at.steps, index]
    if (item.key?.kind === anything) {
      values.push(plainValue(member))
    } else if (isLeaf(item) && item.key !== undefined) {
      const value = readLeaf(check, member, item, { ...at, steps, at: member.place })
      if (value !== undefined) values.push(value.value)
    } else {
      checkEntry(check, member, item, { ...at, steps, at: member.place })
      values.push(index)
    }
  })
  putValue(check, item.key, at, { value: values, place: list.items[0]?.place ?? list.place })
}

/** `users.0 = a`, `users.1 = b` is how HOCON variables add to a list. */
function numberedToList(entry: Entry): Entry {
  if (entry.type !== 'map' || entry.members.size === 0) return entry
  const names = [...entry.members.keys()]
  if (!names.every((name) => /^\d+$/.test(name))) return entry
  const items = names
    .sort((a, b) => Number(a) - Number(b))
    .map((name) => entry.members.get(name)?.entry as Entry)
  return { type: 'list', items, place: entry.place }
}

function checkFree(check: TreeCheck, entry: Entry, shape: Shape, at: At): void {
  const kind = shape.key?.kind
  if (kind === freeMap && entry.type !== 'map')
    report(check, shape, at, entry, 'it is not a map', 'a map')
  else if (kind === freeList && entry.type !== 'list')
    report(check, shape, at, entry, 'it is not a list', 'a list')
  else
    putValue(check, shape.key, at, {
      value: entry.type === 'scalar' ? entry.raw : plainValue(entry),
      place: entry.place,
    })
}

export function plainValue(entry: Entry): unknown {
  if (entry.type === 'scalar') return entry.value
  if (entry.type === 'list') return entry.items.map(plainValue)
  return Object.fromEntries(
    [...entry.members].map(([name, member]) => [name, plainValue(member.entry)]),
  )
}

function checkLeaf(check: TreeCheck, entry: Entry, shape: Shape, at: At): void {
  const value = readLeaf(check, entry, shape, at)
  if (value === undefined || entry.type !== 'scalar') return
  putValue(check, shape.key, at, { ...value, raw: entry.raw, place: entry.place })
}

function readLeaf(
  check: TreeCheck,
  entry: Entry,
  shape: Shape,
  at: At,
): { value: unknown } | undefined {
  const kind = shape.key?.kind as Kind
  if (entry.type !== 'scalar') {
    report(check, shape, at, entry, `it is a ${entry.type}`, kind.allowed)
    return undefined
  }
  const reading = check.typed ? readTyped(check, kind, entry, shape, at) : kind.fromText(entry.raw)
  if ('value' in reading) return reading
  report(check, shape, at, entry, reading.reason, kind.allowed)
  return undefined
}

function readTyped(
  check: TreeCheck,
  kind: Kind,
  entry: ScalarEntry,
  shape: Shape,
  at: At,
): Reading {
  const { value, raw } = entry
  if (value === null) return { reason: 'it is empty' }
  if (
    kind === boolean &&
    entry.plain &&
    typeof value === 'string' &&
    /^(?:yes|no|on|off)$/i.test(value)
  ) {
    check.problems.push({
      severity: 'warning',
      rule: 'old-boolean',
      key: keyName(shape.steps),
      path: printPath(at.steps),
      place: entry.place,
      found: raw,
      message: `${keyName(shape.steps)} is written as ${raw}, which only older YAML takes for a boolean.`,
      hint: `${lastStep(at.steps)}: ${/^(?:yes|on)$/i.test(value)}`,
    })
    return kind.fromText(value)
  }
  const type =
    typeof value === 'number'
      ? Number.isInteger(value)
        ? 'integer'
        : 'number'
      : (typeof value as 'string' | 'boolean')
  const fits = kind.yaml.includes(type) || (type === 'integer' && kind.yaml.includes('number'))
  if (!fits) return { reason: mismatch(kind, type) }
  if (typeof value !== 'number') return kind.fromText(String(value))
  return kind.fromText(/^\d+(?:\.\d+)?$/.test(raw) && type === 'number' ? raw : String(value))
}

function mismatch(kind: Kind, type: string): string {
  if (type === 'string')
    return `it is a text, and ${kind.name === 'boolean' ? 'a boolean' : 'a number'} is needed`
  if (type === 'boolean')
    return `it is a boolean, and ${kind.yaml.includes('string') ? 'a text' : 'a number'} is needed`
  if (kind.yaml.includes('integer')) return 'it is not an integer'
  return 'it is a number, and a text is needed; put it in quotes if it is meant'
}

function putValue(
  check: TreeCheck,
  key: Key | undefined,
  at: At,
  found: { value: unknown; raw?: string; place: Place },
): void {
  const secret = key?.secret === true
  const name = printPath(at.steps)
  const raw = secret ? undefined : found.raw
  const setting = { name, value: found.value, raw, place: found.place, key, secret }
  check.settings.put({ ...setting, file: check.file }, at.steps)
  const sets = (key as CantonKey | undefined)?.sets
  if (sets === undefined) return
  const steps = mappedSteps(sets.path, key as CantonKey, at.steps)
  check.settings.put({ ...setting, file: sets.file }, steps)
}

/** The steps of the key that a HOCON setting overrides, the keys of maps taken over. */
function mappedSteps(path: string, key: CantonKey, steps: readonly Step[]): Step[] {
  const wild = key.path
    .split('.')
    .flatMap((part, index) => (part === '*' ? [steps[index] as Step] : []))
  return path.split('.').map((part) => (part === '*' ? (wild.shift() as Step) : part))
}

function noteReference(check: TreeCheck, shape: Shape, at: At): void {
  check.problems.push({
    severity: check.lenient ? 'warning' : 'notice',
    rule: 'reference-key',
    key: keyName(shape.steps),
    path: printPath(at.steps),
    place: at.at,
    message: `${keyName(shape.steps)} is known from the reference deployment and means nothing here: ${shape.key?.doc}`,
  })
}

function reportUnknown(check: TreeCheck, parent: Shape, at: At, name: string): void {
  const near = nearestWord(name, parent.members.keys())
  const key = keyName([...parent.steps, name])
  const severity = check.unknown(parent, name, near)
  const elsewhere = near === undefined ? check.elsewhere(key) : undefined
  const hint = near !== undefined ? `Did you mean ${near}?` : elsewhere
  check.problems.push({
    severity: severity === 'error' && check.lenient ? 'warning' : severity,
    file: check.file,
    rule: 'unknown-key',
    ...(near === undefined ? {} : { meant: keyName([...parent.steps, near]) }),
    key,
    path: printPath(at.steps),
    place: at.at,
    message:
      severity === 'error'
        ? `The key ${key} is unknown, so it would have no effect.`
        : `The setting ${key} is unknown to this node and has no effect.`,
    ...(hint === undefined ? {} : { hint }),
  })
}

function reportMissing(check: TreeCheck, shape: Shape, at: At): void {
  const key = shape.key ?? (shape.item?.key as Key)
  const name = keyName(shape.steps)
  check.problems.push({
    severity: 'error',
    file: check.file,
    rule: 'required',
    key: name,
    path: printPath(at.steps),
    place: at.at,
    message: `${name} is missing. ${key.doc}`,
    allowed: key.kind.allowed,
    ...(key.example === undefined
      ? {}
      : { hint: correctedLine(check, at.steps, shape, key.example) }),
  })
}

function report(
  check: TreeCheck,
  shape: Shape,
  at: At,
  entry: Entry,
  reason: string,
  allowed: string,
): void {
  const name = keyName(shape.steps)
  const meant =
    entry.type === 'scalar' && shape.key?.kind === boolean && /^(?:true|false)$/i.test(entry.raw)
  const example = meant ? entry.raw.toLowerCase() : shape.key?.example
  const secret = shape.key?.secret === true
  check.problems.push({
    severity: 'error',
    file: check.file,
    rule: `kind-${(shape.key?.kind.name ?? 'block').replaceAll(' ', '-')}`,
    key: name,
    path: printPath(at.steps),
    place: entry.place,
    message: `${name} is wrong: ${reason}.`,
    allowed,
    ...(entry.type === 'scalar' && !secret ? { found: shown(entry.raw) } : {}),
    ...(example === undefined ? {} : { hint: correctedLine(check, at.steps, shape, example) }),
  })
}

function correctedLine(
  check: TreeCheck,
  steps: readonly Step[],
  shape: Shape,
  example: string,
): string {
  const isItem = shape.steps.at(-1) === '[]' || shape.item !== undefined
  const value = isItem && example !== '[]' ? `[${example}]` : example
  const path = steps.filter((step) => typeof step === 'string')
  return check.typed ? `${lastStep(path)}: ${value}` : `${printPath(path)} = ${value}`
}

function lastStep(steps: readonly Step[]): string {
  return String(steps.filter((step) => typeof step === 'string').at(-1))
}

export function shown(text: string): string {
  const masked = maskText(text.slice(0, MASKED_LENGTH_MAX), [])
  return masked.length > SHOWN_LENGTH_MAX ? `${masked.slice(0, SHOWN_LENGTH_MAX)}…` : masked
}
