import { createSimulatedClock, type SimulatedClock } from '../base/clock.ts'
import { createLogs } from '../base/log.ts'
import type { WalletConfig } from '../config/node-config.ts'
import type { Db } from '../db/db.ts'
import { createHealth } from '../health/checks.ts'
import { callOwnRoutes, type HttpAnswer, type HttpCall, type HttpRequest } from '../http/call.ts'
import { coin, coinOf } from '../ledger/coin.ts'
import { type Ledger, openLedger } from '../ledger/ledger.ts'
import { archiveCommand, createCommand, exerciseCommand, type Network } from '../ledger/network.ts'
import { chooseInputs, coinsOf, transfer } from '../ledger/payments.ts'
import { createPreapproval, preapproval } from '../ledger/preapproval.ts'
import { openRound } from '../ledger/round.ts'
import { amuletRules, firstRules, type TrafficParameters } from '../ledger/rules.ts'
import { TEMPLATES } from '../ledger/templates.ts'
import { buildLedgerApp } from '../listen.ts'
import { createRegistry } from '../metrics/registry.ts'
import { prepareAutomations } from '../open-automations.ts'
import { authenticationOff } from '../users/caller.ts'
import { insertParty } from '../users/parties-store.ts'
import { type Decimal, decimal } from '../values/decimal.ts'
import { type Instant, instantFromMicros } from '../values/instant.ts'
import type { ActRecord } from '../wallet/acts.ts'
import type { NetworkReader } from '../wallet/network-reader.ts'
import { openParticipantClient, type Participant } from '../wallet/participant.ts'
import { createTrafficReserve } from '../wallet/reserve.ts'
import { createTurns } from '../wallet/turns.ts'
import { openView, type View } from '../wallet/view.ts'
import { openWalletLog } from '../wallet/wallet-log.ts'

/**
 * A node's wallets on a network of its own, in driven time and without ports: the real ledger, its
 * real routes, the real view and the real automations, which whoever drives the time runs.
 */
export type World = {
  clock: SimulatedClock
  ledger: Ledger
  view: View
  participant: Participant
  reader: NetworkReader
  automations: ReturnType<typeof prepareAutomations>
  network(): Promise<Network>
  /** Opens the next round, with another price. */
  setPrice(price: Decimal): Promise<void>
  /** Somebody outside pays a wallet. */
  payIn(receiver: string, amount: Decimal): Promise<void>
  givePreapproval(of: {
    receiver: string
    provider: string
    expiresAtMicros: bigint
  }): Promise<void>
  /** Lets the view hold what the ledger does. */
  settle(): Promise<void>
  close(): Promise<void>
}

export type WorldOptions = {
  databases: { app: Db; participant: Db }
  config: WalletConfig
  seed: string
  startMicros: bigint
  dso: string
  operator: string
  /** Parties with a wallet on the node, the operator's among them. */
  wallets: readonly string[]
  /** Everybody else. */
  others: readonly string[]
  /** Pays what comes in from outside. */
  payer: string
  price: Decimal
  traffic: TrafficParameters
  isDevNet: boolean
  /** Bought traffic of the node and what of it is used, where the network does not keep account. */
  trafficState?: () => { purchased: bigint; consumed: bigint }
  newTrackingId: () => string
  record?: (act: ActRecord) => Promise<void>
  /** Stands between the wallets and the participant. */
  onCall?: (request: HttpRequest, call: HttpCall) => Promise<HttpAnswer>
}

const TICK_MICROS = 600_000_000n
/** The view follows within milliseconds. */
const SETTLE_MS = 30_000
/** What the payer starts with; more than anyone earns. */
const PAYER_FUNDS = decimal('1000000000000')

export async function openWorld(options: WorldOptions): Promise<World> {
  const { databases, config, dso, operator } = options
  const clock = createSimulatedClock(options.startMicros)
  await using parts = new AsyncDisposableStack()
  const fingerprint = operator.slice(operator.indexOf('::') + 2)
  const participantId = `participant::${fingerprint}`
  const synchronizerId = `global-domain::${fingerprint}`
  const ledger = await openLedger({
    db: databases.participant,
    clock,
    migrationId: 0n,
    synchronizerId,
    templates: TEMPLATES,
    deduplicationMs: config.deduplicationMs,
    seed: options.seed,
  })
  parts.defer(() => ledger.close())
  const parties = [dso, operator, options.payer, ...options.wallets, ...options.others]
  for (const party of new Set(parties)) await addParty(databases.participant, party, clock)
  await found(ledger, options)

  const app = await buildRoutes(ledger, { participantId, synchronizerId, clock })
  parts.defer(() => app.close())
  const reader = ledgerReader(ledger, options)
  const reserve = createTrafficReserve({
    reservedTraffic: config.topUp?.reservedTraffic,
    async extraTrafficRemainder() {
      const status = await reader.traffic(synchronizerId, participantId)
      return status && status.limit - status.consumed
    },
    // In driven time a second is nothing.
    now: () => Number(clock.nowMicros() / 1000n),
  })
  const call = callOwnRoutes(app)
  const { onCall } = options
  const participant = openParticipantClient({
    call: onCall === undefined ? call : (request) => onCall(request, call),
    token: async () => undefined,
    clock,
    isRemote: false,
    admit: (priority) => reserve.admit(priority),
  })
  const view = await openView({
    participant,
    log: openWalletLog({
      db: databases.app,
      place: { participantId, migrationId: 0n },
      isReadOnly: false,
    }),
    parties: [...new Set([operator, ...options.wallets])],
    synchronizerId,
    // Whoever needs the view is told why it stands still.
    onError: () => {},
  })
  parts.defer(() => view.close())
  const automations = prepareAutomations({
    config,
    db: databases.app,
    participant,
    view,
    reader,
    turns: createTurns(),
    operator,
    migrationId: 0n,
    clock,
    record: options.record ?? (async () => {}),
    newTrackingId: options.newTrackingId,
  })

  async function network(): Promise<Network> {
    const [rules] = await ledger.contractsOf(amuletRules, dso)
    const round = await newestRound(ledger, dso)
    if (rules === undefined) throw new Error('The network was founded.')
    const { contractId, payload } = round
    return {
      dso,
      rules: rules.contractId,
      external: '',
      round: contractId,
      amuletPrice: payload.amuletPrice,
    }
  }

  const closing = parts.move()
  return {
    clock,
    ledger,
    view,
    participant,
    reader,
    automations,
    network,
    async setPrice(price) {
      const { payload, contractId } = await newestRound(ledger, dso)
      const next = roundOf(dso, { number: payload.round.number + 1n, price, clock })
      await ledger.submit({
        actAs: [dso],
        commands: [
          archiveCommand(ledger, openRound, contractId),
          createCommand(ledger, openRound, next),
        ],
      })
    },
    async payIn(receiver, amount) {
      const { payer: sender } = options
      const chosen = chooseInputs(await coinsOf(ledger, sender), amount)
      if (chosen === undefined) throw new Error('Outside there is always enough.')
      await transfer(ledger, await network(), { sender, receiver, amount, inputs: chosen.inputs })
    },
    async givePreapproval({ receiver, provider, expiresAtMicros: expiresAt }) {
      await ledger.submit({
        actAs: [...new Set([receiver, provider])],
        commands: [
          exerciseCommand(ledger, {
            template: amuletRules,
            contractId: (await network()).rules,
            choice: createPreapproval,
            argument: { receiver, provider, expiresAt },
          }),
        ],
      })
    },
    async settle() {
      await view.waitFor(ledger.end, AbortSignal.timeout(SETTLE_MS))
      if (view.end < ledger.end) throw new Error(view.fault() ?? 'The wallets stand still.')
    },
    close: () => closing.disposeAsync(),
  }
}

async function addParty(db: Db, party: string, clock: SimulatedClock): Promise<void> {
  await insertParty(db, {
    party,
    isLocal: true,
    localMetadata: { resourceVersion: '0', annotations: {} },
    identityProviderId: '',
    createdAt: instantFromMicros(clock.nowMicros()) as Instant,
  })
}

/** Rules, a round and somebody outside who has coins. */
async function found(ledger: Ledger, options: WorldOptions): Promise<void> {
  const { dso, payer, price, traffic, isDevNet } = options
  const [synchronizerId = ''] = ledger.synchronizers
  const rules = firstRules({ dso, synchronizerId, tickMicros: TICK_MICROS, traffic })
  await ledger.submit({
    actAs: [...new Set([dso, payer])],
    commands: [
      createCommand(ledger, amuletRules, { ...rules, isDevNet }),
      createCommand(ledger, openRound, roundOf(dso, { number: 0n, price, clock: ledger.clock })),
      createCommand(ledger, coin, coinOf(payer, PAYER_FUNDS, { dso, round: 0n })),
    ],
  })
}

function roundOf(
  dso: string,
  { number, price, clock }: { number: bigint; price: Decimal; clock: { nowMicros(): bigint } },
) {
  const opensAt = clock.nowMicros()
  return {
    dso,
    round: { number },
    amuletPrice: price,
    opensAt,
    targetClosesAt: opensAt + 2n * TICK_MICROS,
    tickDuration: { microseconds: TICK_MICROS },
  }
}

async function newestRound(ledger: Ledger, dso: string) {
  const rounds = await ledger.contractsOf(openRound, dso)
  const [newest] = rounds.toSorted((a, b) =>
    a.payload.round.number < b.payload.round.number ? 1 : -1,
  )
  if (newest === undefined) throw new Error('The network has a round.')
  return newest
}

/** The ledger API as a node serves it, but on no port. */
async function buildRoutes(
  ledger: Ledger,
  { clock, ...node }: { participantId: string; synchronizerId: string; clock: SimulatedClock },
) {
  const logs = createLogs({ level: 'silent', pretty: false })
  const around = {
    logs,
    health: createHealth(),
    registry: createRegistry({ nativeHistograms: false }),
    statusOf: (id: string) => ({
      id,
      version: '',
      commitTime: '',
      startedAt: 0,
      ports: () => ({}),
    }),
  }
  const api = {
    ...node,
    db: ledger.db,
    authentication: authenticationOff,
    keySet: undefined,
    embedded: { ledger, simulated: clock },
    ledgerOff: undefined,
  }
  return (await buildLedgerApp(around, api, undefined)).app
}

/** What a scan would tell. */
function ledgerReader(ledger: Ledger, { dso, trafficState }: WorldOptions): NetworkReader {
  return {
    dso: async () => dso,
    async rules() {
      const [rules] = await ledger.contractsOf(amuletRules, dso)
      if (rules === undefined) throw new Error('The network was founded.')
      return rules
    },
    round: () => newestRound(ledger, dso),
    async preapproval(receiver) {
      const now = ledger.clock.nowMicros()
      const held = await ledger.contractsOf(preapproval, receiver)
      return held.find(({ payload }) => payload.receiver === receiver && payload.expiresAt > now)
    },
    async traffic() {
      const state = trafficState?.()
      return state && { ...state, limit: state.purchased }
    },
  }
}
