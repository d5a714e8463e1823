import type { Clock } from '../base/clock.ts'
import type { HttpAnswer, HttpCall, HttpRequest } from '../http/call.ts'
import { microsOf, parseInstant } from '../values/instant.ts'
import {
  type ActiveContract,
  type LedgerEvent,
  readActive,
  readTransaction,
  readUpdate,
  type Update,
} from './ledger-event.ts'
import { noAnswer, ParticipantError, refusalOf } from './participant-error.ts'

/**
 * The participant as the validator app sees it: the ledger API, by the same routes whether it is
 * this node's own or another's.
 */
export type Participant = {
  /** Waits until the transaction is durable. Throws `ParticipantError`. */
  submit(submission: Submission): Promise<Submitted>
  ledgerEnd(): Promise<bigint>
  /** Everything up to this offset has been pruned. */
  prunedOffset(): Promise<bigint>
  /** Active contracts of the parties at an offset, a page at a time. */
  activeContracts(query: {
    parties: readonly string[]
    offset: bigint
    /** `#package-name:Module.Name:Entity`. */
    templateIds: readonly string[]
  }): AsyncGenerator<ActiveContract[]>
  /** Updates that concern the parties. */
  updatesAfter(query: UpdatesQuery): Promise<Update[]>
  /** Resolves when something may have happened after the offset, or when the time is over. */
  waitAfter(query: WaitQuery): Promise<void>
  /** Microseconds since 1970, as the participant has it. */
  now(): Promise<bigint>
  /** Undefined unless a test drives the participant's time. */
  simulatedTime(): Promise<bigint | undefined>
  participantId(): Promise<string>
  /** The synchronizer where everything starts. */
  synchronizerId(): Promise<string>
  /** The party of that name on this participant, allocated if it is not there. */
  ensureParty(hint: string): Promise<string>
  isKnownParty(party: string): Promise<boolean>
  findUser(userId: string): Promise<ParticipantUser | undefined>
  createUser(user: { id: string; primaryParty: string; actAs: readonly string[] }): Promise<void>
  rightsOf(userId: string): Promise<ParticipantRight[]>
  /** Tells those of the parties that the user could not act as before. */
  grantActAs(userId: string, parties: readonly string[]): Promise<string[]>
  revokeActAs(userId: string, parties: readonly string[]): Promise<void>
  /** The user of the service token; undefined where authentication is off. */
  ownUserId(): Promise<string | undefined>
}

export type Submission = {
  actAs: readonly string[]
  readAs?: readonly string[]
  /** Of two submissions with one id the ledger accepts one. */
  commandId: string
  commands: readonly Command[]
  workflowId?: string
  disclosedContracts?: readonly { contractId: string }[]
  /** What is low waits while the traffic reserve is being used up. */
  priority: 'high' | 'low'
}

export type Command =
  | { CreateCommand: { templateId: string; createArguments: unknown } }
  | {
      ExerciseCommand: {
        templateId: string
        contractId: string
        choice: string
        choiceArgument: unknown
      }
    }

export type Submitted = {
  updateId: string
  offset: bigint
  recordTime: string
  events: readonly LedgerEvent[]
}

export type UpdatesQuery = {
  parties: readonly string[]
  /** Exclusive. */
  offset: bigint
  /** Inclusive; where the ledger ends now unless given. */
  until?: bigint
  limit: number
}

export type WaitQuery = {
  parties: readonly string[]
  offset: bigint
  waitMs: number
  signal: AbortSignal
}

export type ParticipantUser = { id: string; primaryParty: string; isDeactivated: boolean }
export type ParticipantRight = { kind: string; party: string }

export type ParticipantOptions = {
  call: HttpCall
  /** The token of the service user; undefined where authentication is off. */
  token(): Promise<string | undefined>
  /** The time of this node's own ledger, or of the machine. */
  clock: Pick<Clock, 'nowMicros'>
  /** Whether the participant may have a simulated time of its own. */
  isRemote: boolean
  /** How to wait for this process's own ledger; without it the ledger API is asked to wait. */
  waitForOwn?(offset: bigint, signal: AbortSignal): Promise<void>
  /** Throws when a command of low priority must wait. */
  admit?(priority: 'high' | 'low'): Promise<void>
}

export function openParticipantClient(options: ParticipantOptions): Participant {
  const { call, token, clock } = options
  let synchronizer: string | undefined
  let participant: string | undefined

  async function send(request: HttpRequest): Promise<HttpAnswer> {
    const bearer = await token()
    const headers = {
      'content-type': 'application/json',
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    }
    try {
      return await call({ ...request, headers })
    } catch (error) {
      throw noAnswer(error)
    }
  }

  async function ask<T>(
    method: HttpRequest['method'],
    path: string,
    rest: { body?: object; signal?: AbortSignal } = {},
  ): Promise<T> {
    const { body, signal } = rest
    const answer = await send({
      method,
      path,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (answer.status !== 200) throw refusalOf(answer.status, answer.body)
    return JSON.parse(answer.body) as T
  }

  const post = <T>(path: string, body: object, signal?: AbortSignal) =>
    ask<T>('POST', path, { body, ...(signal === undefined ? {} : { signal }) })
  const userPath = (userId: string) => `/v2/users/${encodeURIComponent(userId)}`
  const rightsBody = (userId: string, parties: readonly string[]) => ({
    userId,
    identityProviderId: '',
    rights: parties.map(actAsRight),
  })

  async function participantId(): Promise<string> {
    participant ??= (await ask<{ participantId: string }>('GET', '/v2/parties/participant-id'))
      .participantId
    return participant
  }

  async function isKnownParty(party: string): Promise<boolean> {
    type Answer = { partyDetails: { party: string }[] }
    const path = `/v2/parties/${encodeURIComponent(party)}`
    const { partyDetails } = await ask<Answer>('GET', path)
    return partyDetails.some((known) => known.party === party)
  }

  async function simulatedTime(): Promise<bigint | undefined> {
    const answer = await send({ method: 'GET', path: '/v2/time' })
    if (answer.status !== 200) return undefined
    const instant = parseInstant((JSON.parse(answer.body) as { now: string }).now)
    return instant && microsOf(instant)
  }

  return {
    participantId,
    isKnownParty,

    async submit({ priority, actAs, readAs = [], commandId, commands, ...rest }) {
      await options.admit?.(priority)
      const eventFormat = { filtersByParty: filtersOf(actAs), verbose: false }
      const { transaction } = await post<{ transaction: Record<string, unknown> }>(
        '/v2/commands/submit-and-wait-for-transaction',
        {
          commands: {
            commandId,
            actAs,
            readAs,
            commands,
            workflowId: rest.workflowId ?? '',
            disclosedContracts: rest.disclosedContracts ?? [],
          },
          transactionFormat: { eventFormat, transactionShape: EFFECTS },
        },
      )
      const { updateId, offset, recordTime, events } = readTransaction(transaction)
      return { updateId, offset, recordTime, events }
    },

    async ledgerEnd() {
      return BigInt((await ask<{ offset: number }>('GET', '/v2/state/ledger-end')).offset)
    },

    async prunedOffset() {
      type Answer = { participantPrunedUpToInclusive: number }
      const answer = await ask<Answer>('GET', '/v2/state/latest-pruned-offsets')
      return BigInt(answer.participantPrunedUpToInclusive)
    },

    async *activeContracts({ parties, offset, templateIds }) {
      const cumulative = templateIds.map((templateId) => ({
        identifierFilter: { TemplateFilter: { value: { templateId } } },
      }))
      const filtersByParty = Object.fromEntries(parties.map((party) => [party, { cumulative }]))
      const body = { eventFormat: { filtersByParty }, activeAtOffset: Number(offset) }
      type Page = { activeContracts: unknown[]; nextPageToken?: string }
      for (let pageToken: string | undefined = ''; pageToken !== undefined; ) {
        const path = '/v2/state/active-contracts-page'
        const page: Page = await post<Page>(path, { ...body, pageToken })
        yield page.activeContracts.map(readActive).filter((contract) => contract !== undefined)
        pageToken = page.nextPageToken
      }
    },

    async updatesAfter({ parties, offset, until, limit }) {
      const list = await post<unknown[]>(`/v2/updates?limit=${limit}`, {
        ...updatesBody(parties, offset),
        ...(until === undefined ? {} : { endInclusive: Number(until) }),
      })
      return list.map(readUpdate).filter((update) => update !== undefined)
    },

    async waitAfter({ parties, offset, waitMs, signal }) {
      if (options.waitForOwn !== undefined) {
        const patience = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
        return options.waitForOwn(offset, patience)
      }
      const path = `/v2/updates?limit=1&stream_idle_timeout_ms=${waitMs}`
      await post<unknown[]>(path, updatesBody(parties, offset), signal)
    },

    async now() {
      return (options.isRemote ? await simulatedTime() : undefined) ?? clock.nowMicros()
    },

    simulatedTime,

    async synchronizerId() {
      if (synchronizer !== undefined) return synchronizer
      type Answer = { connectedSynchronizers: { synchronizerId: string }[] }
      const answer = await ask<Answer>('GET', '/v2/state/connected-synchronizers')
      const [first] = answer.connectedSynchronizers
      if (first === undefined) {
        const of = { status: 200, isDefinite: true, isRetryable: true }
        throw new ParticipantError('The participant is connected to no synchronizer.', of)
      }
      synchronizer = first.synchronizerId
      return synchronizer
    },

    async ensureParty(hint) {
      const id = await participantId()
      const party = `${hint}::${id.slice(id.indexOf('::') + 2)}`
      if (await isKnownParty(party)) return party
      type Answer = { partyDetails: { party: string } }
      try {
        return (await post<Answer>('/v2/parties', { partyIdHint: hint })).partyDetails.party
      } catch (error) {
        // Another process may have been quicker.
        if (error instanceof ParticipantError && (await isKnownParty(party))) return party
        throw error
      }
    },

    async findUser(userId) {
      try {
        return (await ask<{ user: ParticipantUser }>('GET', userPath(userId))).user
      } catch (error) {
        if (error instanceof ParticipantError && error.status === 404) return undefined
        throw error
      }
    },

    async createUser({ id, primaryParty, actAs }) {
      await post('/v2/users', { user: { id, primaryParty }, rights: actAs.map(actAsRight) })
    },

    async rightsOf(userId) {
      type Answer = { rights: StatedRight[] }
      const { rights } = await ask<Answer>('GET', `${userPath(userId)}/rights`)
      return rights.flatMap(readRight)
    },

    async grantActAs(userId, parties) {
      type Answer = { newlyGrantedRights: StatedRight[] }
      const path = `${userPath(userId)}/rights`
      const { newlyGrantedRights } = await post<Answer>(path, rightsBody(userId, parties))
      return newlyGrantedRights.flatMap(readRight).map(({ party }) => party)
    },

    async revokeActAs(userId, parties) {
      const path = `${userPath(userId)}/rights`
      await ask('PATCH', path, { body: rightsBody(userId, parties) })
    },

    async ownUserId() {
      if ((await token()) === undefined) return undefined
      return (await ask<{ user: { id: string } }>('GET', '/v2/authenticated-user')).user.id
    },
  }
}

/** Everything that the parties witness, choices included. */
const EFFECTS = 'TRANSACTION_SHAPE_LEDGER_EFFECTS'

function updatesBody(parties: readonly string[], offset: bigint): object {
  const eventFormat = { filtersByParty: filtersOf(parties), verbose: false }
  return {
    beginExclusive: Number(offset),
    updateFormat: {
      includeTransactions: { eventFormat, transactionShape: EFFECTS },
      includeReassignments: eventFormat,
    },
  }
}

function filtersOf(parties: readonly string[]): object {
  return Object.fromEntries(parties.map((party) => [party, { cumulative: [] }]))
}

function actAsRight(party: string): object {
  return { kind: { CanActAs: { value: { party } } } }
}

type StatedRight = { kind: Record<string, { value: { party?: string } }> }

function readRight({ kind }: StatedRight): ParticipantRight[] {
  return Object.entries(kind).map(([name, { value }]) => ({ kind: name, party: value.party ?? '' }))
}
