import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { SimulatedClock } from '../base/clock.ts'
import { type Authentication, guard } from '../users/caller.ts'
import { invalidArgument, permissionDenied } from '../users/errors.ts'
import { bodyOf, textField } from '../users/request-fields.ts'
import { type Instant, instantFromMicros, microsOf, parseInstant } from '../values/instant.ts'

const MICROS = { ms: 1000n, s: 1_000_000n, m: 60_000_000n, h: 3_600_000_000n, d: 86_400_000_000n }
/** Contracts that are made then must be able to expire later, and times end with the year 9999. */
const LAST_MICROS = microsOf('9998-12-31T23:59:59.999999Z' as Instant)
const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/

/** /v2/time: the clock of a node that was started with --sim-time, for callers on this machine. */
export const timeRoutes = async (
  app: FastifyInstance,
  { clock, authentication }: { clock: SimulatedClock; authentication: Authentication },
): Promise<void> => {
  const local = guard(authentication, (_caller, request) => requireLoopback(request))
  const now = () => ({ now: instantFromMicros(clock.nowMicros()) as Instant })

  app.get('/v2/time', local, async () => now())

  app.post('/v2/time', local, async (request) => {
    const body = bodyOf(request)
    const advance = textField(body, 'advance')
    const set = textField(body, 'set')
    if ((advance === '') === (set === '')) {
      throw invalidArgument('give either advance, such as "48h", or set, an ISO-8601 time')
    }
    const ahead = advance === '' ? untilTime(clock, set) : durationOf(advance)
    if (clock.nowMicros() + ahead > LAST_MICROS) {
      throw invalidArgument('time goes on to the end of the year 9998, no further')
    }
    clock.advance(ahead)
    return now()
  })
}

const durationOf = (text: string): bigint => {
  const match = DURATION.exec(text)
  if (match === null) throw invalidArgument(`advance is a number with ms, s, m, h or d: "48h"`)
  return BigInt(match[1] as string) * MICROS[match[2] as keyof typeof MICROS]
}

const untilTime = (clock: SimulatedClock, text: string): bigint => {
  const instant = parseInstant(text)
  if (instant === undefined) throw invalidArgument('set is an ISO-8601 time with Z')
  const ahead = microsOf(instant) - clock.nowMicros()
  if (ahead < 0n) throw invalidArgument('time does not go back')
  return ahead
}

const requireLoopback = (request: FastifyRequest): void => {
  const address = request.raw.socket.remoteAddress ?? ''
  if (!/^(127\.|::1$|::ffff:127\.)/.test(address)) {
    throw permissionDenied('time is driven from the machine of the node only')
  }
}
