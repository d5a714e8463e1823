import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type LedgerError,
  ledgerErrorBody,
  toLedgerError,
  traceIdOf,
} from '../http/ledger-error.ts'
import { serveWebSockets, type UpgradeRefusal } from '../http/websocket.ts'
import type { WebSocketConnection } from '../http/websocket-connection.ts'
import { type Authentication, type Caller, callerOf, canReadAs, guard } from '../users/caller.ts'
import { invalidArgument, missingField, permissionDenied } from '../users/errors.ts'
import {
  bodyOf,
  type JsonObject,
  objectField,
  parseBody,
  queryText,
  textField,
} from '../users/request-fields.ts'
import { contractEventsRoutes } from './contract-events-routes.ts'
import { contractsPageRoutes } from './contracts-page-routes.ts'
import {
  accessTokenExpired,
  listTooLong,
  staleStreamAuthorization,
  tooManyStreams,
} from './errors.ts'
import {
  readEventFormat,
  readUpdateFormat,
  requireReader,
  type UpdateFormat,
} from './event-format.ts'
import type { Ledger } from './ledger.ts'
import { partyList, readOffset } from './request-ids.ts'
import { singleUpdateRoutes } from './single-update-routes.ts'
import { type Range, readActiveContracts, readCompletions, readUpdates } from './streams.ts'

export type ReadingRoutesOptions = {
  ledger: Ledger
  authentication: Authentication
  /** Streams at a time. */
  streamsMax?: number
}

/** How far a plan goes this time; what the client said about its ends is known to it. */
type PlanRange = Pick<Range, 'signal' | 'mayWait'> & { after?: bigint; until?: bigint }
type Plan = (range: PlanRange) => AsyncGenerator<object>
type Reader = (body: JsonObject, caller: Caller) => Promise<Plan>
type ListOptions = { limit: number | undefined; idleMs: number | undefined }

/** Elements of a list: some 20 MB. Streams have no end. */
const LIST_MAX = 10_000
/** A client may wait this long for something to be listed. */
const IDLE_MS_MAX = 20_000
/** Each holds a socket and a page of updates, and its rights are checked again and again. */
const STREAMS_MAX = 1000
/** Who opens a stream says within this time what it wants. */
const REQUEST_MS_MAX = 30_000
/** A stream is checked so often for a token or right that has gone. */
const RECHECK_MS = 1000

/** Reads of the ledger: its end, contracts, updates, completions; as lists and as streams. */
export const readingRoutes = async (
  app: FastifyInstance,
  { ledger, authentication, streamsMax = STREAMS_MAX }: ReadingRoutesOptions,
): Promise<void> => {
  const anyone = guard(authentication)

  app.get('/v2/state/ledger-end', anyone, async () => ({ offset: Number(await ledger.refresh()) }))

  app.get('/v2/state/latest-pruned-offsets', anyone, async () => {
    const pruned = Number(await ledger.pruned())
    return {
      participantPrunedUpToInclusive: pruned,
      allDivulgedContractsPrunedUpToInclusive: pruned,
    }
  })

  const readWithFormat = async (format: UpdateFormat, body: JsonObject, caller: Caller) => {
    for (const part of [format.transactions?.format, format.reassignments]) {
      if (part !== undefined) requireReader(caller, part)
    }
    const stated = readRange(body)
    return (range: PlanRange) => readUpdates(ledger, narrow(stated, range), format)
  }

  const readers: Record<string, Reader> = {
    '/v2/state/active-contracts': async (body, caller) => {
      const stated = objectField(body, 'eventFormat') ?? objectField(body, 'filter')
      if (stated === undefined) throw invalidArgument('eventFormat is missing')
      const format = readEventFormat(ledger, stated)
      requireReader(caller, format)
      const offset = readOffset(body, 'activeAtOffset') ?? (await ledger.refresh())
      return () => readActiveContracts(ledger, { offset, format })
    },
    '/v2/updates': async (body, caller) =>
      readWithFormat(readUpdateFormat(ledger, body), body, caller),
    // The older path for transactions alone, which wallets still use.
    '/v2/updates/flats': async (body, caller) =>
      readWithFormat({ ...readUpdateFormat(ledger, body), reassignments: undefined }, body, caller),
    '/v2/commands/completions': async (body, caller) => {
      const parties = partyList(body, 'parties')
      for (const party of parties) {
        if (!canReadAs(caller, party)) throw permissionDenied(`the caller may not read as ${party}`)
      }
      if (parties.length === 0) throw missingField('parties')
      const stated = textField(body, 'userId')
      const userId = caller.userId ?? stated
      if (stated !== '' && stated !== userId) {
        throw permissionDenied('the body names another user than the token')
      }
      const range = readRange(body)
      return (now) => readCompletions(ledger, narrow(range, now), { userId, parties })
    },
  }

  for (const [path, read] of Object.entries(readers)) {
    app.post(path, anyone, async (request) => {
      const makePlan = () => read(bodyOf(request), callerOf(request))
      const options = readListOptions(request)
      return untilGone(request, (isGone) => takeList({ makePlan, isGone }, options, ledger))
    })
  }

  await singleUpdateRoutes(app, { ledger, authentication })
  await contractEventsRoutes(app, { ledger, authentication })
  await contractsPageRoutes(app, { ledger, authentication })

  const authenticate = (message: IncomingMessage) =>
    authentication.authenticate({ raw: message } as FastifyRequest)
  const stream =
    (read: Reader) => async (socket: WebSocketConnection, message: IncomingMessage) => {
      try {
        const text = await socket.next(REQUEST_MS_MAX)
        if (text === undefined) return
        const mayRead = async () => read(parseBody(text), await authenticate(message))
        await sendAll(socket, await mayRead(), mayRead)
      } catch (error) {
        await socket.send(errorText(error, message))
      }
    }
  const streams = serveWebSockets(
    app.server,
    Object.fromEntries(Object.entries(readers).map(([path, read]) => [path, stream(read)])),
    {
      authorize: (message) =>
        authenticate(message).then(
          () => undefined,
          (error: unknown) => refusalOf(error, message),
        ),
      admit: (open, message) =>
        open < streamsMax ? undefined : refusalOf(tooManyStreams(streamsMax), message),
    },
  )
  // Hooks that are added last run first: before the server ends the connections that look idle to it.
  app.addHook('onReady', async () => {
    app.addHook('onClose', () => streams.close())
  })
}

const refusalOf = (error: unknown, message: IncomingMessage): UpgradeRefusal => ({
  status: toLedgerError(error).status,
  body: errorText(error, message),
})

/**
 * Everything up to now, or the first `limit` of it. When there is nothing, the client may wait for
 * something: `stream_idle_timeout_ms`. A list that would be longer than it may be is refused, never cut.
 */
const takeList = async (
  { makePlan, isGone }: { makePlan: () => Promise<Plan>; isGone: AbortSignal },
  { limit, idleMs }: ListOptions,
  ledger: Ledger,
): Promise<object[]> => {
  const list: object[] = []
  const collect = async (range: PlanRange, max: number) => {
    for await (const element of (await makePlan())(range)) {
      list.push(element)
      if (list.length >= max) return
    }
  }
  const end = await ledger.refresh()
  await collect({ signal: isGone, until: end, mayWait: () => false }, limit ?? LIST_MAX + 1)
  if (list.length > LIST_MAX) throw listTooLong(LIST_MAX)
  if (list.length > 0 || idleMs === undefined) return list
  const signal = AbortSignal.any([isGone, AbortSignal.timeout(idleMs)])
  const mayWait = () => list.length === 0
  await collect({ signal, after: end, mayWait }, limit ?? LIST_MAX)
  return list
}

const readListOptions = (request: FastifyRequest): ListOptions => ({
  limit: queryNumber(request, 'limit', LIST_MAX),
  idleMs: queryNumber(request, 'stream_idle_timeout_ms', IDLE_MS_MAX),
})

/** Aborts when the client has gone, so that nothing is read or waited for in vain. */
const untilGone = async <T>(
  { raw }: FastifyRequest,
  work: (isGone: AbortSignal) => Promise<T>,
): Promise<T> => {
  const gone = new AbortController()
  const abort = () => gone.abort()
  raw.socket.once('close', abort)
  try {
    return await work(gone.signal)
  } finally {
    raw.socket.off('close', abort)
  }
}

const sendAll = async (
  socket: WebSocketConnection,
  plan: Plan,
  recheck: () => Promise<unknown>,
): Promise<void> => {
  const stop = new AbortController()
  const signal = AbortSignal.any([socket.closed, stop.signal])
  let refusal: unknown
  const timer = setInterval(() => {
    recheck().catch((error: unknown) => {
      refusal = authorizationLost(error)
      stop.abort()
    })
  }, RECHECK_MS)
  try {
    for await (const element of plan({ signal })) await socket.send(JSON.stringify(element))
  } finally {
    clearInterval(timer)
  }
  if (refusal !== undefined) throw refusal
}

type Stated = Pick<Range, 'after' | 'until'>

/** What ends a stream that was allowed to begin. */
const authorizationLost = (error: unknown): unknown => {
  const { category } = toLedgerError(error)
  if (category === 'denied') return staleStreamAuthorization()
  return category === 'unauthenticated' ? accessTokenExpired() : error
}

/** Offsets are whole numbers; 0 is the beginning. */
const readRange = (body: JsonObject): Stated => {
  const after = readOffset(body, 'beginExclusive') ?? 0n
  const until = readOffset(body, 'endInclusive')
  if (until !== undefined && until < after) {
    throw invalidArgument('endInclusive must not lie before beginExclusive')
  }
  return { after, until }
}

const narrow = (stated: Stated, { after, until, ...range }: PlanRange): Range => ({
  ...range,
  after: after !== undefined && after > stated.after ? after : stated.after,
  until:
    until === undefined || (stated.until !== undefined && stated.until < until)
      ? stated.until
      : until,
})

const queryNumber = (request: FastifyRequest, name: string, max: number): number | undefined => {
  const text = queryText(request, name)
  if (text === '') return undefined
  if (!/^\d{1,9}$/.test(text) || Number(text) < 1) {
    throw invalidArgument(`${name} must be a whole number from 1 to ${max}`)
  }
  return Math.min(Number(text), max)
}

const errorText = (error: unknown, message: IncomingMessage): string => {
  const traceId = traceIdOf(message.headers.traceparent)
  const known: LedgerError = toLedgerError(error)
  return JSON.stringify(ledgerErrorBody(known, { correlationId: traceId, traceId }))
}
