import type { Db } from '../db/db.ts'
import { type Instant, instantFromMicros, microsOf } from '../values/instant.ts'
import {
  type ActRow,
  deleteAct,
  finishAct,
  insertAct,
  selectOpenActs,
  updateAct,
} from './automation-store.ts'
import type { Command, Participant } from './participant.ts'
import { ParticipantError } from './participant-error.ts'
import { TrafficReserved } from './reserve.ts'

/**
 * Acts of automations, each done once however often the node is killed. An act is stored with its
 * tracking id before it is submitted, and its command id follows from that. Afterwards it is recorded
 * and no longer open. What a crash or a lost answer leaves open is looked up in the ledger: either it
 * happened, and then only the record is missing, or it did not, and then the next attempt at the same
 * thing goes under the same command id, of which the ledger accepts one.
 */

export type Act = {
  automation: string
  party: string
  /** What it is about; an open act about the same is taken up. */
  subject: string
  /** For the record: "send 5 to …". */
  what: string
  because: string
  actAs: readonly string[]
  priority: 'high' | 'low'
  commands(trackingId: string): readonly Command[]
}

export type ActDone = { trackingId: string; updateId: string; what: string }

/** What the record of the node says of an act. */
export type ActRecord = {
  automation: string
  party: string
  what: string
  updateId: string
  trackingId: string
}

export type Acts = {
  /** Finds out what has become of acts that a crash left open; before anything else is done. */
  takeUp(): Promise<ActDone[]>
  /** Finds out what has become of acts of an automation whose answers got lost. */
  review(of: { automation: string; party: string }): Promise<void>
  perform(act: Act): Promise<ActDone>
}

export type ActsOptions = {
  db: Db
  participant: Participant
  view: { readonly end: bigint }
  nowMicros(): bigint
  newTrackingId(): string
  /** How long the ledger remembers a command id. */
  deduplicationMs: number
  /** Writes the act to the node's record; must not write the same tracking id twice. */
  record(done: ActRecord): Promise<void>
}

/** Updates that are looked through at a time, for one that was made before a crash. */
const LOOKUP_UPDATES = 200

export function createActs(options: ActsOptions): Acts {
  const { db, participant, view } = options
  const open = new Map<string, ActRow>()

  async function finish(act: ActRow, updateId: string): Promise<ActDone> {
    const { automation, party, what, trackingId } = act
    await options.record({ automation, party, what, updateId, trackingId })
    const doneAt = instantFromMicros(options.nowMicros()) as Instant
    await finishAct(db, trackingId, { automation, party, what, updateId, doneAt })
    open.delete(keyOf(act))
    return { trackingId, updateId, what }
  }

  async function drop(act: ActRow): Promise<void> {
    await deleteAct(db, act.trackingId)
    open.delete(keyOf(act))
  }

  /** The update that the act became; undefined when it did not happen as far as the ledger knows. */
  async function lookUp({ actAs, beginOffset, ...act }: ActRow): Promise<string | undefined> {
    const until = await participant.ledgerEnd()
    const pruned = await participant.prunedOffset()
    let offset = beginOffset < pruned ? pruned : beginOffset
    for (;;) {
      const query = { parties: actAs, offset, until, limit: LOOKUP_UPDATES }
      const updates = offset < until ? await participant.updatesAfter(query) : []
      for (const update of updates) {
        if (update.kind === 'transaction' && update.commandId === commandIdOf(act)) {
          return update.updateId
        }
      }
      const last = updates.at(-1)
      if (last === undefined || updates.length < LOOKUP_UPDATES) return undefined
      offset = last.offset
    }
  }

  /** Beyond its time a command id no longer keeps an act from being done twice. */
  function isForgotten({ begunAt }: ActRow): boolean {
    const ageMicros = options.nowMicros() - microsOf(begunAt as Instant)
    return ageMicros >= (BigInt(options.deduplicationMs) * 1000n) / 2n
  }

  async function begin(act: Act): Promise<ActRow> {
    const known = open.get(keyOf(act))
    if (known !== undefined && !isForgotten(known)) {
      const again = { ...known, what: act.what, actAs: act.actAs }
      await updateAct(db, again)
      open.set(keyOf(act), again)
      return again
    }
    if (known !== undefined) await drop(known)
    const { automation, party, subject, what, actAs } = act
    const begun: ActRow = {
      trackingId: options.newTrackingId(),
      automation,
      party,
      subject,
      actAs,
      what,
      beginOffset: view.end,
      begunAt: instantFromMicros(options.nowMicros()) as Instant,
    }
    await insertAct(db, begun)
    open.set(keyOf(begun), begun)
    return begun
  }

  async function submit(act: Act, begun: ActRow): Promise<ActDone> {
    const submission = {
      actAs: act.actAs,
      commandId: commandIdOf(begun),
      commands: act.commands(begun.trackingId),
      workflowId: act.automation,
      priority: act.priority,
    }
    try {
      const { updateId } = await participant.submit(submission)
      return await finish(begun, updateId)
    } catch (error) {
      if (error instanceof ParticipantError && error.code === 'DUPLICATE_COMMAND') {
        const updateId = await lookUp(begun)
        if (updateId !== undefined) return finish(begun, updateId)
      }
      // What may have happened stays open, and is looked up before the next attempt.
      if (isWithoutEffect(error)) await drop(begun)
      throw error
    }
  }

  return {
    async takeUp() {
      const done: ActDone[] = []
      for (const act of await selectOpenActs(db)) {
        const updateId = await lookUp(act)
        if (updateId !== undefined) done.push(await finish(act, updateId))
        else if (isForgotten(act)) await drop(act)
        else open.set(keyOf(act), act)
      }
      return done
    },
    async review({ automation, party }) {
      for (const act of [...open.values()]) {
        if (act.automation !== automation || act.party !== party) continue
        const updateId = await lookUp(act)
        if (updateId !== undefined) await finish(act, updateId)
      }
    },
    perform: async (act) => submit(act, await begin(act)),
  }
}

/** Of the same automation, wallet and matter at most one act is open. */
function keyOf({ automation, party, subject }: Pick<Act, 'automation' | 'party' | 'subject'>) {
  return JSON.stringify([automation, party, subject])
}

function isWithoutEffect(error: unknown): boolean {
  // Both come before anything is sent.
  if (error instanceof TrafficReserved || (error as Error).name === 'NoServiceToken') return true
  return error instanceof ParticipantError && error.isDefinite
}

function commandIdOf({ automation, trackingId }: Pick<ActRow, 'automation' | 'trackingId'>) {
  return `annals-${automation}-${trackingId}`
}
