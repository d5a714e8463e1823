/** Where a command writes and what it knows of its surroundings; tests hand in their own. */
export type Terminal = {
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  /** Whether a person watches standard error. */
  isInteractive: boolean
}

/** What commands need of the process they run in. */
export type CliContext = {
  env: Readonly<Record<string, string | undefined>>
  terminal: Terminal
}

/** A failure whose message tells the user what to do; no stack is printed. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly exitCode: number
  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Documented in docs/operating.md. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

export function printNumber(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function printBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let amount = bytes
  let unit = 0
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000
    unit += 1
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${units[unit]}`
}

export function printDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '?'
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
