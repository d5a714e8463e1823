// Child processes of the bench: programs that say in lines on standard output when they are ready and
// what they found.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

export type Child = {
  readonly pid: number
  /** The end of what it wrote to standard error. */
  readonly errors: string
  /** Writes a line to the child's standard input. */
  send(line: string): void
  /** The next line of its standard output; fails when the child ends before. */
  nextLine(): Promise<string>
  /** Asks it to end and waits until it has. */
  stop(): Promise<void>
  /** Waits until it ends by itself, and fails unless that was success. */
  succeed(): Promise<void>
}

/** Whoever does not end in this time after being asked is ended. */
const STOP_TIMEOUT_MS = 15_000

export function startChild(command: string, args: string[]): Child {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000)
  })
  // A child that ends early closes its input; its exit tells the story better.
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const closed = once(child, 'close')
  closed.catch(() => {})
  return {
    pid: child.pid ?? -1,
    get errors() {
      return errors
    },
    send: (line) => child.stdin.write(`${line}\n`),
    async nextLine() {
      const { done, value } = await lines.next()
      if (!done) return value
      await closed
      throw new Error(`${describe(child)} ended too early. ${errors}`)
    },
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await closed
      clearTimeout(timer)
    },
    async succeed() {
      child.stdout.resume()
      await closed
      if (child.exitCode !== 0) throw new Error(`${describe(child)} failed. ${errors}`)
    },
  }
}

/** Starts a TypeScript program of this repository with the Node that runs the bench. */
export function startProgram(path: string, args: string[]): Child {
  return startChild(process.execPath, [new URL(path, import.meta.url).pathname, ...args])
}

/** Memory and processor time of a process, where the system tells (Linux). */
export type Usage = { residentBytes: number; peakBytes: number; cpuSeconds: number }

/** The unit of the times in /proc; the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

export function readUsage(pid: number): Usage | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kib = (name: string) => Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1])
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before them stands in parentheses and may hold spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return {
      residentBytes: kib('VmRSS') * 1024,
      peakBytes: kib('VmHWM') * 1024,
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    }
  } catch {
    return undefined
  }
}

function describe(child: ChildProcess): string {
  return `The program ${child.spawnargs.join(' ')}`
}
