import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type LedgerError,
  ledgerErrorBody,
  toLedgerError,
  traceIdOf,
} from '../http/ledger-error.ts'
import { serveWebSockets, type WebSocketConnection } from '../http/websocket.ts'
import { type Authentication, type Caller, callerOf, canReadAs, guard } from '../users/caller.ts'
import { invalidArgument, invalidField, permissionDenied } from '../users/errors.ts'
import {
  bodyOf,
  type JsonObject,
  objectField,
  parseBody,
  queryText,
  textField,
} from '../users/request-fields.ts'
import { updateJson } from './api-json.ts'
import { updateNotFound } from './errors.ts'
import { readEventFormat, readUpdateFormat, requireReader } from './event-format.ts'
import type { Ledger } from './ledger.ts'
import { textList } from './read-commands.ts'
import { type Range, readActiveContracts, readCompletions, readUpdates } from './streams.ts'

export type ReadingRoutesOptions = { ledger: Ledger; authentication: Authentication }

type Plan = (range: Omit<Range, 'after' | 'until'>) => AsyncGenerator<object>
type Reader = (body: JsonObject, caller: Caller, isStream: boolean) => Promise<Plan>

/** A list has at most so many elements unless the client asks for fewer; streams have no end. */
const LIST_MAX = 10_000
/** A client may wait this long for something to be listed. */
const IDLE_MS_MAX = 20_000
/** A stream is checked so often for a token or right that has gone. */
const RECHECK_MS = 1000

/** Reads of the ledger: its end, contracts, updates, completions; as lists and as streams. */
export const readingRoutes = async (
  app: FastifyInstance,
  { ledger, authentication }: ReadingRoutesOptions,
): Promise<void> => {
  const anyone = guard(authentication)

  app.get('/v2/state/ledger-end', anyone, async () => ({ offset: Number(await ledger.refresh()) }))

  app.get('/v2/state/latest-pruned-offsets', anyone, async () => ({
    participantPrunedUpToInclusive: 0,
    allDivulgedContractsPrunedUpToInclusive: 0,
  }))

  const readers: Record<string, Reader> = {
    '/v2/state/active-contracts': async (body, caller) => {
      const stated = objectField(body, 'eventFormat') ?? objectField(body, 'filter')
      if (stated === undefined) throw invalidArgument('eventFormat is missing')
      const format = readEventFormat(ledger, stated)
      requireReader(caller, format)
      const offset = readOffset(body, 'activeAtOffset') ?? (await ledger.refresh())
      return () => readActiveContracts(ledger, { offset, format })
    },
    '/v2/updates': async (body, caller, isStream) => {
      const format = readUpdateFormat(ledger, body)
      for (const part of [format.transactions?.format, format.reassignments]) {
        if (part !== undefined) requireReader(caller, part)
      }
      const range = await readRange(ledger, body, isStream)
      return ({ signal }) => readUpdates(ledger, { ...range, signal }, format)
    },
    '/v2/commands/completions': async (body, caller, isStream) => {
      const parties = textList(body, 'parties')
      for (const party of parties) {
        if (!canReadAs(caller, party)) throw permissionDenied(`the caller may not read as ${party}`)
      }
      const userId = caller.userId ?? textField(body, 'userId')
      const range = await readRange(ledger, body, isStream)
      return ({ signal }) => readCompletions(ledger, { ...range, signal }, { userId, parties })
    },
  }

  for (const [path, read] of Object.entries(readers)) {
    app.post(path, anyone, async (request) => {
      const makePlan = () => read(bodyOf(request), callerOf(request), false)
      return takeList(makePlan, request, ledger)
    })
  }

  app.post('/v2/updates/update-by-id', anyone, async (request) => {
    const body = bodyOf(request)
    const format = readUpdateFormat(ledger, body)
    for (const part of [format.transactions?.format, format.reassignments]) {
      if (part !== undefined) requireReader(callerOf(request), part)
    }
    const update = await ledger.update(textField(body, 'updateId'))
    const shown = update && (await updateJson(ledger, update, format))
    if (shown === undefined) throw updateNotFound()
    return shown
  })

  const authenticate = (message: IncomingMessage) =>
    authentication.authenticate({ raw: message } as FastifyRequest)
  const stream =
    (read: Reader) => async (socket: WebSocketConnection, message: IncomingMessage) => {
      try {
        const text = await socket.next()
        if (text === undefined) return
        const plan = await read(parseBody(text), await authenticate(message), true)
        await sendAll(socket, plan, () => authenticate(message))
      } catch (error) {
        await socket.send(errorText(error, message))
      }
    }
  serveWebSockets(
    app.server,
    Object.fromEntries(Object.entries(readers).map(([path, read]) => [path, stream(read)])),
    async (message) => {
      try {
        await authenticate(message)
        return undefined
      } catch (error) {
        return { status: toLedgerError(error).status, body: errorText(error, message) }
      }
    },
  )
}

/** Everything up to now; with `stream_idle_timeout_ms`, an empty list waits that long for more. */
const takeList = async (
  makePlan: () => Promise<Plan>,
  request: FastifyRequest,
  ledger: Ledger,
): Promise<object[]> => {
  const limit = queryNumber(request, 'limit', LIST_MAX) ?? LIST_MAX
  const idleMs = queryNumber(request, 'stream_idle_timeout_ms', IDLE_MS_MAX) ?? 0
  const collect = async () => {
    const list: object[] = []
    const plan = await makePlan()
    for await (const element of plan({ signal: new AbortController().signal })) {
      list.push(element)
      if (list.length >= limit) break
    }
    return list
  }
  const { end } = ledger
  const list = await collect()
  if (list.length > 0 || idleMs === 0) return list
  await ledger.waitAfter(end, AbortSignal.timeout(idleMs))
  return collect()
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
      refusal = error
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

/** Offsets are whole numbers; 0 is the beginning. A list ends where the ledger ends now. */
const readRange = async (
  ledger: Ledger,
  body: JsonObject,
  isStream: boolean,
): Promise<Pick<Range, 'after' | 'until'>> => {
  const after = readOffset(body, 'beginExclusive') ?? 0n
  const stated = readOffset(body, 'endInclusive')
  if (stated !== undefined && stated < after) {
    throw invalidArgument('endInclusive must not lie before beginExclusive')
  }
  if (isStream) return { after, until: stated }
  const end = await ledger.refresh()
  return { after, until: stated === undefined || stated > end ? end : stated }
}

const readOffset = (body: JsonObject, key: string): bigint | undefined => {
  const value = body[key] ?? undefined
  if (value === undefined || value === '') return undefined
  if (!/^\d{1,18}$/.test(String(value))) throw invalidField(key, 'must be an offset, such as 42')
  return BigInt(String(value))
}

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
