/** A named question about the node. Undefined means well; otherwise a sentence that says what is not. */
export type Check = { name: string; run(): Promise<string | undefined> | string | undefined }

export type Verdict = { ready: boolean; failures: { name: string; reason: string }[] }

export type Health = {
  add(check: Check): void
  verdict(): Promise<Verdict>
  /** From now on the node is not ready, because it stops. */
  stop(): void
}

/** A check that hangs is a failing check. */
const CHECK_TIMEOUT_MS = 2_000

/** The node is ready when every check passes; it is not while it starts or stops. */
export function createHealth(): Health {
  const checks: Check[] = []
  let isStopping = false
  return {
    add(check) {
      checks.push(check)
    },
    stop() {
      isStopping = true
    },
    async verdict() {
      if (isStopping)
        return { ready: false, failures: [{ name: 'node', reason: 'The node is stopping.' }] }
      const reasons = await Promise.all(checks.map(runBounded))
      const failures = checks.flatMap(({ name }, i) => {
        const reason = reasons[i]
        return reason === undefined ? [] : [{ name, reason }]
      })
      return { ready: failures.length === 0, failures }
    },
  }
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
