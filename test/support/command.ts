import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from './engines.ts'

// The program as a user runs it, in a process of its own.

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const PROGRAM = fileURLToPath(new URL('../../bin/annals.js', import.meta.url))

export type Outcome = { code: number | null; signal: string | null; stdout: string; stderr: string }

export type CommandOptions = {
  cwd?: string
  input?: string | Uint8Array
  env?: NodeJS.ProcessEnv
  /** Another program that runs it; the command line follows its own arguments. */
  through?: string[]
  /** Another Node. */
  node?: string
}

export function startCommand(
  t: Cleanup,
  args: string[],
  options: CommandOptions = {},
): ChildProcess {
  const line = [...(options.through ?? []), options.node ?? process.execPath, PROGRAM, ...args]
  const child = spawn(line[0] as string, line.slice(1), {
    cwd: options.cwd ?? ROOT,
    env: options.env ?? process.env,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  t.after(() => {
    child.kill('SIGKILL')
  })
  // A command that does not read its input may be gone before it is written.
  child.stdin?.on('error', () => {})
  if (options.input === undefined) child.stdin?.end()
  else child.stdin?.end(options.input)
  return child
}

export async function runCommand(
  t: Cleanup,
  args: string[],
  options: CommandOptions = {},
): Promise<Outcome> {
  return outcomeOf(startCommand(t, args, options))
}

export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const [stdout, stderr, [code, signal]] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    once(child, 'exit') as Promise<[number | null, string | null]>,
  ])
  return { code, signal, stdout, stderr }
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of stream ?? []) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

export type NodeUrls = Record<'ledgerUrl' | 'scanUrl' | 'validatorUrl' | 'metricsUrl', string>

export const FREE_PORTS = ['ledger', 'scan', 'validator', 'metrics'].flatMap((name) => [
  `--${name}-port`,
  '0',
])

/** Starts a node on free ports and waits until it is ready. */
export async function startNodeProcess(
  t: Cleanup,
  args: string[],
  options: CommandOptions = {},
): Promise<{ child: ChildProcess; urls: NodeUrls; lines: string[] }> {
  const child = startCommand(t, ['start', '--json', ...FREE_PORTS, ...args], options)
  const lines: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<NodeUrls>()
  let held = ''
  child.stdout?.on('data', (chunk) => {
    held += chunk
    const parts = held.split('\n')
    held = parts.pop() as string
    lines.push(...parts)
    for (const part of parts) resolve(JSON.parse(part))
  })
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log = `${log}${chunk}`.slice(-5000)
  })
  child.once('exit', (code) => reject(new Error(`The node ended with ${code}: ${log}`)))
  return { child, urls: await promise, lines }
}
