import { createHash } from 'node:crypto'
import { PlainError } from '../http/plain-error.ts'
import type { LedgerEvent } from './ledger-event.ts'
import type { Submitted } from './participant.ts'
import { ParticipantError } from './participant-error.ts'
import { type Wallet, waitForView } from './wallet.ts'
import { answerRequest, dropRequest, keepRequest, selectEntryOfCommand } from './wallet-store.ts'

/**
 * Requests that are carried out once, whoever repeats them. A request is written down before the ledger
 * hears of it, and its command id follows from its tracking id, so of all attempts the ledger accepts
 * one. Whoever asks again for the same gets the same answer; for something else under the same id, a
 * refusal. What the ledger has refused for certain leaves the tracking id free.
 */
export type OnceRequest<A> = {
  party: string
  kind: string
  trackingId: string
  /** What is asked for: another content under the same id is a conflict. */
  content: object
  submit(commandId: string): Promise<Submitted>
  /** The answer, from the transaction that the request became. */
  read(done: { updateId: string; events: readonly LedgerEvent[] }): A
  /** Whether it has happened as far as the wallet itself remembers, longer than the ledger does. */
  recall?(commandId: string): Promise<A | undefined>
}

export type Once = { carryOut<A>(wallet: Wallet, request: OnceRequest<A>): Promise<A> }

export function createOnce(): Once {
  const underWay = new Map<string, { content: string; answer: Promise<unknown> }>()
  return {
    carryOut<A>(wallet: Wallet, request: OnceRequest<A>): Promise<A> {
      const { party, kind, trackingId } = request
      const key = JSON.stringify([party, kind, trackingId])
      const content = JSON.stringify(request.content)
      const running = underWay.get(key)
      if (running !== undefined) {
        if (running.content !== content) return Promise.reject(otherContent(trackingId))
        return running.answer as Promise<A>
      }
      const answer = carryOutOnce(wallet, request, content).finally(() => underWay.delete(key))
      underWay.set(key, { content, answer })
      return answer
    },
  }
}

/** The same for every attempt, on every node that shares the participant. */
export function commandIdOf(of: { party: string; kind: string; trackingId: string }): string {
  const { party, kind, trackingId } = of
  const digest = createHash('sha256')
    .update(JSON.stringify([party, kind, trackingId]))
    .digest('hex')
  return `annals-${kind}-${digest}`
}

async function carryOutOnce<A>(
  wallet: Wallet,
  request: OnceRequest<A>,
  content: string,
): Promise<A> {
  const { db } = wallet
  const commandId = commandIdOf(request)
  const stored = await keepRequest(db, request, content)
  if (stored.content !== content) throw otherContent(request.trackingId)
  if (stored.answer !== undefined) return JSON.parse(stored.answer) as A
  const recalled = stored.isNew ? undefined : await request.recall?.(commandId)
  const answer = recalled ?? (await attempt(wallet, request, commandId, stored.isNew))
  await answerRequest(db, request, { content, answer: JSON.stringify(answer) })
  return answer
}

async function attempt<A>(
  wallet: Wallet,
  request: OnceRequest<A>,
  commandId: string,
  isFirst: boolean,
): Promise<A> {
  try {
    const done = await request.submit(commandId)
    await waitForView(wallet, done.offset)
    return request.read(done)
  } catch (error) {
    if (error instanceof ParticipantError && error.completionOffset !== undefined) {
      return readEarlier(wallet, request, { commandId, offset: error.completionOffset })
    }
    // An earlier attempt, of which nobody knows what became, may still be carried out.
    if (isFirst && isWithoutEffect(error)) await dropRequest(wallet.db, request)
    throw error
  }
}

/** The ledger accepted the command before, and the answer got lost. */
async function readEarlier<A>(
  wallet: Wallet,
  request: OnceRequest<A>,
  of: { commandId: string; offset: bigint },
): Promise<A> {
  await waitForView(wallet, of.offset)
  const recalled = await request.recall?.(of.commandId)
  if (recalled !== undefined) return recalled
  const query = { parties: [request.party], offset: of.offset - 1n, until: of.offset, limit: 1 }
  const [update] = await wallet.participant.updatesAfter(query)
  if (update?.kind === 'transaction') return request.read(update)
  throw new PlainError(
    409,
    `A request with the tracking id ${request.trackingId} was carried out before, and what it led to is no longer known.`,
  )
}

/** Money that moved stands in the log. */
export async function recallEntry(wallet: Wallet, party: string, commandId: string) {
  return selectEntryOfCommand(wallet.db, { party, commandId })
}

function isWithoutEffect(error: unknown): boolean {
  if (error instanceof PlainError) return true
  if (error instanceof ParticipantError) return error.isDefinite
  return ['TrafficReserved', 'NetworkAway', 'NoServiceToken', 'TooManyTurns'].includes(
    (error as Error).name,
  )
}

function otherContent(trackingId: string): PlainError {
  return new PlainError(
    409,
    `A different request was made with the tracking id ${trackingId} before. Give every request a tracking id of its own.`,
  )
}
