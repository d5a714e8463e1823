/** A named question about the node. Undefined means well; otherwise a sentence that says what is not. */
export type Check = { name: string; run(): Promise<string | undefined> | string | undefined }

export type Failure = { name: string; reason: string; since: Date }
export type Verdict = { ready: boolean; failures: Failure[] }

export type Health = {
  add(check: Check): void
  names(): string[]
  /** Asks every check once, then again and again in the background. */
  start(): Promise<void>
  /** What the checks last said; costs nothing and never waits. */
  verdict(): Verdict
  /** From now on the node is not ready, because it stops. */
  stop(): void
}

export type HealthOptions = {
  /** Told when a check begins to fail, with its reason, and when it passes again. */
  onChange?: (name: string, failure: Failure | undefined) => void
}

/** How old an answer may be: a probe that asks every few seconds sees a change in time. */
const INTERVAL_MS = 1_000
/** A check that hangs is a failing check. */
const CHECK_TIMEOUT_MS = 2_000

/** The node is ready when every check passes; it is not while it starts or stops. */
export function createHealth(options: HealthOptions = {}): Health {
  const checks: Check[] = []
  const failures = new Map<string, Failure>()
  const bornAt = new Date()
  let phase: Failure | undefined = { name: 'node', reason: 'The node is starting.', since: bornAt }
  let timer: NodeJS.Timeout | undefined
  let isAsking = false

  function note(name: string, reason: string | undefined): void {
    const known = failures.get(name)
    if (reason === undefined) {
      if (failures.delete(name)) options.onChange?.(name, undefined)
      return
    }
    const failure = { name, reason, since: known?.since ?? new Date() }
    failures.set(name, failure)
    if (known === undefined) options.onChange?.(name, failure)
  }

  async function ask(): Promise<void> {
    if (isAsking) return
    isAsking = true
    await Promise.all(checks.map(async (check) => note(check.name, await runBounded(check))))
    isAsking = false
  }

  return {
    add: (check) => void checks.push(check),
    names: () => checks.map(({ name }) => name),
    async start() {
      await ask()
      phase = undefined
      timer = setInterval(ask, INTERVAL_MS).unref()
    },
    verdict() {
      const found = [...(phase === undefined ? [] : [phase]), ...failures.values()]
      return { ready: found.length === 0, failures: found }
    },
    stop() {
      clearInterval(timer)
      phase = { name: 'node', reason: 'The node is stopping.', since: new Date() }
    },
  }
}

export function printFailures(failures: Failure[]): string {
  return failures
    .map(({ name, reason, since }) => `${name}: ${reason} (since ${since.toISOString()})`)
    .join(' ')
}

async function runBounded(check: Check): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, CHECK_TIMEOUT_MS, `No answer within ${CHECK_TIMEOUT_MS} ms.`)
  })
  try {
    return await Promise.race([Promise.resolve(check.run()), late])
  } catch (error) {
    return (error as Error).message
  } finally {
    clearTimeout(timer)
  }
}
