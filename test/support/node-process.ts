import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from './engines.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const READY_TIMEOUT_MS = 30_000
/** Arguments of a start on ports that nobody uses. */
export const FREE_PORTS = ['ledger', 'scan', 'validator', 'metrics'].flatMap((name) => [
  `--${name}-port`,
  '0',
])

export type Output = { code: number | null; stdout: string; stderr: string }

type Surroundings = { cwd?: string; env?: Record<string, string>; input?: string }

/** Runs a command to its end, as a user would; only the given variables are in its environment. */
export async function runCommand(args: string[], around: Surroundings = {}): Promise<Output> {
  const child = spawnProgram(args, around)
  const output = collect(child)
  child.stdin?.end(around.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...output }
}

export type RunningCommand = {
  child: ChildProcess
  urls: Record<'ledger' | 'scan' | 'validator' | 'metrics', string>
  output: { stdout: string; stderr: string }
  /** Ends it with a signal and waits for its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** `annals start --json` on free ports, ready; killed after the test if it still runs. */
export async function startCommand(
  t: Cleanup,
  args: string[],
  around: Surroundings = {},
): Promise<RunningCommand> {
  const child = spawnProgram(['start', '--json', ...FREE_PORTS, ...args], around)
  const output = collect(child)
  const exit = once(child, 'exit') as Promise<[number | null]>
  t.after(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const line = await readyLine(child, output)
  return {
    child,
    output,
    urls: {
      ledger: line.ledgerUrl,
      scan: line.scanUrl,
      validator: line.validatorUrl,
      metrics: line.metricsUrl,
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return (await exit)[0]
    },
  }
}

/** `annals start` on free ports as people start it, not waited for; to be killed. */
export function spawnNode(t: Cleanup, args: string[], around: Surroundings = {}) {
  const child = spawnProgram(['start', ...FREE_PORTS, ...args], around)
  const output = collect(child)
  const exit = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await exit
  }
  t.after(kill)
  return { child, output, kill }
}

async function readyLine(child: ChildProcess, output: { stdout: string; stderr: string }) {
  const deadline = AbortSignal.timeout(READY_TIMEOUT_MS)
  while (!output.stdout.includes('\n')) {
    if (child.exitCode !== null) throw new Error(`The node ended: ${output.stderr}`)
    await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, 'data', { signal: deadline }),
      once(child, 'exit', { signal: deadline }),
    ])
  }
  return JSON.parse(output.stdout.split('\n')[0] as string) as Record<string, string> & {
    ledgerUrl: string
    scanUrl: string
    validatorUrl: string
    metricsUrl: string
  }
}

function spawnProgram(args: string[], { cwd, env = {} }: Surroundings): ChildProcess {
  return spawn(process.execPath, [PROGRAM, ...args], { ...(cwd === undefined ? {} : { cwd }), env })
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    output.stderr += chunk
  })
  return output
}
