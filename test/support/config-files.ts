import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type ConfigReading, readConfig } from '../../src/config/config.ts'
import { ALL_PARTS, type Part } from '../../src/config/parts.ts'
import type { Problem } from '../../src/config/problem.ts'
import type { SourcesRequest } from '../../src/config/sources.ts'

export type ConfigCase = {
  name: string
  files: Record<string, string>
  env: Record<string, string>
  expect: 'ok' | 'error'
  error_key: string | null
  why: string
}

export function configCases(): ConfigCase[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../data/config-cases.json'), 'utf8'))
}

export function caseNamed(name: string): ConfigCase {
  const found = configCases().find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`There is no case ${name}.`)
  return structuredClone(found)
}

/** A directory with the given files, gone at the end of the scope. */
export function withFiles(
  files: Record<string, string | Uint8Array>,
): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), 'annals-config-'))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), content)
  }
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Where the files of a case belong: each is given if it is there. */
export function requestFor(
  dir: string,
  files: Record<string, unknown>,
  env: Record<string, string>,
): SourcesRequest {
  const given = (name: string) => (name in files ? [name] : [])
  return {
    cwd: dir,
    env,
    validatorValues: given('validator-values.yaml'),
    participantValues: given('participant-values.yaml'),
    postgresValues: given('postgres-values.yaml'),
    envFile: '.env' in files ? '.env' : undefined,
    secrets:
      'secrets.yaml' in files
        ? 'secrets.yaml'
        : Object.keys(files).some((name) => name.startsWith('secrets/'))
          ? 'secrets'
          : undefined,
  }
}

export function readFiles(
  files: Record<string, string | Uint8Array>,
  env: Record<string, string> = {},
  options: { parts?: readonly Part[]; lenient?: boolean } = {},
): ConfigReading {
  using directory = withFiles(files)
  return readConfig(requestFor(directory.dir, files, env), {
    parts: ALL_PARTS,
    onboarded: 'no',
    ...options,
  })
}

export function errorsOf(reading: ConfigReading): Problem[] {
  return reading.problems.filter(({ severity }) => severity === 'error')
}

/** The key that the case names, wherever a reader would find it in the problem. */
export function names(problem: Problem, key: string): boolean {
  return [problem.key, problem.path, problem.place?.source.name ?? '', problem.message].some(
    (text) => text.includes(key),
  )
}
