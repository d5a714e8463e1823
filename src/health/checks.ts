/** A named question about the node. Undefined means well; otherwise a sentence that says what is not. */
export type Check = {
  name: string
  run(): Promise<string | undefined> | string | undefined
  /** A check that takes longer fails; two seconds unless told. */
  timeoutMs?: number
}

export type Failure = { name: string; reason: string; since: Date }
export type Verdict = { ready: boolean; failures: Failure[] }

export type Health = {
  add(check: Check): void
  names(): string[]
  /** What the operator should mend although the node is ready: asked with every question. */
  addNotices(notices: () => readonly string[]): void
  notices(): string[]
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
  const noticers: (() => readonly string[])[] = []
  const failures = new Map<string, Failure>()
  const running = new Set<Check>()
  let phase: Failure | undefined = {
    name: 'node',
    reason: 'The node is starting.',
    since: new Date(),
  }
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  function note(name: string, reason: string | undefined): void {
    // What fails because the node closes its parts is no news.
    if (isStopped) return
    const known = failures.get(name)
    if (reason === undefined) {
      if (failures.delete(name)) options.onChange?.(name, undefined)
      return
    }
    const failure = { name, reason, since: known?.since ?? new Date() }
    failures.set(name, failure)
    if (known === undefined) options.onChange?.(name, failure)
  }

  /**
   * Each check is asked by itself, so that one that hangs holds up no other. It is not asked again
   * before it has answered, so that it cannot pile up; its answer counts however late it comes.
   */
  async function ask(check: Check): Promise<void> {
    if (running.has(check)) return
    running.add(check)
    const { name, timeoutMs = CHECK_TIMEOUT_MS } = check
    const { promise, resolve } = Promise.withResolvers<void>()
    const late = setTimeout(() => {
      note(name, `No answer within ${timeoutMs} ms.`)
      resolve()
    }, timeoutMs)
    void reasonOf(check).then((reason) => {
      clearTimeout(late)
      running.delete(check)
      note(name, reason)
      resolve()
    })
    return promise
  }

  return {
    add: (check) => void checks.push(check),
    names: () => checks.map(({ name }) => name),
    addNotices: (notices) => void noticers.push(notices),
    notices: () => noticers.flatMap((notices) => notices()),
    async start() {
      await Promise.all(checks.map(ask))
      if (isStopped) return
      phase = undefined
      timer = setInterval(() => checks.forEach(ask), INTERVAL_MS).unref()
    },
    verdict() {
      const found = [...(phase === undefined ? [] : [phase]), ...failures.values()]
      return { ready: found.length === 0, failures: found }
    },
    stop() {
      clearInterval(timer)
      isStopped = true
      phase = { name: 'node', reason: 'The node is stopping.', since: new Date() }
    },
  }
}

export function printFailures(failures: Failure[]): string {
  return failures
    .map(({ name, reason, since }) => `${name}: ${reason} (since ${since.toISOString()})`)
    .join(' ')
}

async function reasonOf(check: Check): Promise<string | undefined> {
  try {
    return await check.run()
  } catch (error) {
    return (error as Error).message
  }
}
