import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { parseEnvFile } from './env-file.ts'
import type { ValuesFile } from './keys.ts'
import type { Problem } from './problem.ts'
import { type Entry, type Located, mergeEntries, type Place, type Source } from './tree.ts'
import { readYaml } from './yaml-file.ts'

/** A values file has a few kilobytes; a cluster refuses secrets and config maps above one mebibyte. */
const FILE_BYTES_MAX = 1024 * 1024
/** A node has five secrets with a dozen entries. */
const SECRET_ENTRIES_MAX = 1000

export type SourcesRequest = {
  readonly validatorValues?: readonly string[]
  readonly participantValues?: readonly string[]
  readonly postgresValues?: readonly string[]
  readonly envFile?: string | undefined
  /** A directory of mounted secrets, `<secret name>/<entry>`, or a file of Secret manifests. */
  readonly secrets?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Settings of the command line, by key of the validator values: they win over everything. */
  readonly flags?: Readonly<Record<string, { flag: string; value: string }>>
}

export type Sources = {
  readonly request: SourcesRequest
  readonly values: Partial<Record<ValuesFile, Entry>>
  /** Files that were given; also those that are empty or broken. */
  readonly given: ReadonlySet<ValuesFile>
  /** Files that could not be read, so that nothing can be said to be missing in them. */
  readonly broken: ReadonlySet<ValuesFile>
  readonly variables: ReadonlyMap<string, Located>
  /** By `<secret name>/<entry>`; undefined when no secrets were given. */
  readonly secrets: ReadonlyMap<string, Located> | undefined
  readonly problems: readonly Problem[]
}

/** The one place that looks at the environment of the process. */
export function processEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env
}

export function readSources(request: SourcesRequest): Sources {
  const problems: Problem[] = []
  const values: Partial<Record<ValuesFile, Entry>> = {}
  const given = new Set<ValuesFile>()
  const broken = new Set<ValuesFile>()
  const files = {
    validator: request.validatorValues,
    participant: request.participantValues,
    postgres: request.postgresValues,
  }
  for (const [file, paths] of Object.entries(files) as [
    ValuesFile,
    readonly string[] | undefined,
  ][]) {
    for (const path of paths ?? []) {
      given.add(file)
      const entry = readValuesFile(resolve(request.cwd, path), path, problems)
      if (entry === 'broken') broken.add(file)
      else values[file] = mergeEntries(values[file], entry)
    }
  }
  const variables = readVariables(request, problems)
  const secrets =
    request.secrets === undefined ? undefined : readSecrets(request.cwd, request.secrets, problems)
  return { request, values, given, broken, variables, secrets, problems }
}

function readValuesFile(path: string, name: string, problems: Problem[]): Entry | 'broken' {
  const source = readSource(path, name, 'file', problems)
  if (source === undefined) return 'broken'
  const { documents, problems: found } = readYaml(source)
  problems.push(...found)
  const place: Place = { source, line: 1, column: 1, length: 1 }
  const [entry, ...rest] = documents
  if (entry === undefined) {
    return found.length > 0 ? 'broken' : { type: 'map', members: new Map(), place }
  }
  if (rest[0] !== undefined) {
    problems.push(
      fileProblem(
        rest[0].place,
        'The file holds several YAML documents, and a values file is one.',
      ),
    )
  }
  if (entry.type === 'scalar' && entry.value === null)
    return { type: 'map', members: new Map(), place }
  if (entry.type !== 'map') {
    problems.push(fileProblem(entry.place, 'The file is not a map of keys to values.'))
    return 'broken'
  }
  return entry
}

/** Reads a file whole, within its bound, as UTF-8. */
function readSource(
  path: string,
  name: string,
  kind: 'file' | 'secret',
  problems: Problem[],
): Source | undefined {
  const at = (text: string): Place => ({
    source: { name, kind, text, secret: kind === 'secret' },
    line: 1,
    column: 1,
    length: 1,
  })
  let bytes: Buffer
  try {
    const size = statSync(path).size
    if (size > FILE_BYTES_MAX) {
      problems.push(
        fileProblem(at(''), `The file has ${size} bytes, and at most ${FILE_BYTES_MAX} are read.`),
      )
      return undefined
    }
    bytes = readFileSync(path)
  } catch (error) {
    problems.push(fileProblem(at(''), `The file cannot be read: ${readFailure(error)}.`))
    return undefined
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { name, kind, text, secret: kind === 'secret' }
  } catch {
    problems.push(
      fileProblem(
        placeOfBadByte(bytes, at('')),
        'The file is not UTF-8 text. Save it with that encoding.',
      ),
    )
    return undefined
  }
}

function placeOfBadByte(bytes: Buffer, fallback: Place): Place {
  const decoded = bytes.toString('utf8')
  const offset = decoded.indexOf('\uFFFD')
  if (offset === -1) return fallback
  const before = decoded.slice(0, offset).split('\n')
  return { ...fallback, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}

function readFailure(error: unknown): string {
  const code = error instanceof Error ? Reflect.get(error, 'code') : undefined
  const sentences: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission is denied',
    EISDIR: 'it is a directory',
    ENOTDIR: 'a part of its path is not a directory',
  }
  return sentences[String(code)] ?? String(code)
}

function fileProblem(place: Place, message: string): Problem {
  const name = place.source.name
  return { severity: 'error', rule: 'file', key: basename(name), path: name, place, message }
}

/** The environment wins over the file, as in compose. */
function readVariables(request: SourcesRequest, problems: Problem[]): Map<string, Located> {
  const variables = new Map<string, Located>()
  if (request.envFile !== undefined) {
    const source = readSource(
      resolve(request.cwd, request.envFile),
      request.envFile,
      'file',
      problems,
    )
    if (source !== undefined) {
      const parsed = parseEnvFile(source)
      problems.push(...parsed.problems)
      for (const [name, located] of parsed.variables) variables.set(name, located)
    }
  }
  for (const [name, text] of Object.entries(request.env)) {
    if (text !== undefined) variables.set(name, { text, place: variablePlace(name, text) })
  }
  return variables
}

function variablePlace(name: string, text: string): Place {
  const source: Source = { name, kind: 'variable', text, secret: false, variable: name }
  return { source, line: 1, column: 1, length: Math.max(1, text.length) }
}

function readSecrets(cwd: string, path: string, problems: Problem[]): Map<string, Located> {
  const root = isAbsolute(path) ? path : resolve(cwd, path)
  const secrets = new Map<string, Located>()
  try {
    if (statSync(root).isDirectory()) readSecretDirectory(root, path, secrets, problems)
    else readSecretManifests(root, path, secrets, problems)
  } catch (error) {
    const source: Source = { name: path, kind: 'secret', text: '', secret: true }
    problems.push(
      fileProblem(
        { source, line: 1, column: 1, length: 1 },
        `The secrets cannot be read: ${readFailure(error)}.`,
      ),
    )
  }
  return secrets
}

function readSecretDirectory(
  root: string,
  name: string,
  secrets: Map<string, Located>,
  problems: Problem[],
): void {
  // A mounted secret keeps its versions in directories that begin with two dots.
  const visible = (entry: string) => !entry.startsWith('..')
  for (const secret of readdirSync(root).filter(visible).sort()) {
    if (!statSync(join(root, secret)).isDirectory()) {
      if (/\.ya?ml$/.test(secret)) {
        readSecretManifests(join(root, secret), join(name, secret), secrets, problems)
      }
      continue
    }
    for (const entry of readdirSync(join(root, secret)).filter(visible).sort()) {
      if (secrets.size === SECRET_ENTRIES_MAX) return
      if (!statSync(join(root, secret, entry)).isFile()) continue
      const source = readSource(
        join(root, secret, entry),
        join(name, secret, entry),
        'secret',
        problems,
      )
      if (source === undefined) continue
      const text = source.text.replace(/\r?\n$/, '')
      secrets.set(`${secret}/${entry}`, { text, place: { source, line: 1, column: 1, length: 1 } })
    }
  }
}

function readSecretManifests(
  path: string,
  name: string,
  secrets: Map<string, Located>,
  problems: Problem[],
): void {
  const source = readSource(path, name, 'secret', problems)
  if (source === undefined) return
  const { documents, problems: found } = readYaml(source)
  problems.push(...found)
  for (const document of documents) {
    if (textAt(document, 'kind') !== 'Secret') continue
    const secret = textAt(memberOf(document, 'metadata'), 'name')
    if (secret === undefined) continue
    for (const [block, decode] of [
      ['data', (text: string) => Buffer.from(text, 'base64').toString('utf8')],
      ['stringData', (text: string) => text],
    ] as const) {
      const map = memberOf(document, block)
      if (map?.type !== 'map') continue
      for (const [entry, member] of map.members) {
        if (member.entry.type !== 'scalar' || secrets.size === SECRET_ENTRIES_MAX) continue
        secrets.set(`${secret}/${entry}`, {
          text: decode(member.entry.raw),
          place: member.entry.place,
        })
      }
    }
  }
}

function memberOf(entry: Entry | undefined, name: string): Entry | undefined {
  return entry?.type === 'map' ? entry.members.get(name)?.entry : undefined
}

function textAt(entry: Entry | undefined, name: string): string | undefined {
  const member = memberOf(entry, name)
  return member?.type === 'scalar' ? String(member.value) : undefined
}
