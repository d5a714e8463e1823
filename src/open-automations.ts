import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from './base/clock.ts'
import type { NodeConfig, WalletConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import type { Surroundings } from './listen.ts'
import { recordAct } from './users/audit.ts'
import { DECIMAL_MAX, type Decimal, parseDecimal } from './values/decimal.ts'
import { type ActRecord, createActs } from './wallet/acts.ts'
import type { AutomationContext, AutomationNetwork } from './wallet/automation.ts'
import { type AutomationRunner, startAutomations } from './wallet/automation-runner.ts'
import type { RunReport } from './wallet/automation-state.ts'
import { selectDone } from './wallet/automation-store.ts'
import {
  type AutomationRules,
  type ConfiguredAutomations,
  configureAutomations,
  idleWithoutWallet,
} from './wallet/configured-automations.ts'
import { type NetworkReader, readNetwork } from './wallet/network-reader.ts'
import type { Participant } from './wallet/participant.ts'
import type { Turns } from './wallet/turns.ts'
import type { View } from './wallet/view.ts'
import type { Wallet } from './wallet/wallet.ts'
import { type WatchedPruning, withPruning } from './wallet/watch-pruning.ts'

/** What automations need of the wallet. */
export type AutomationSurroundings = {
  config: WalletConfig
  /** The app database. */
  db: Db
  participant: Participant
  view: View
  reader: NetworkReader
  turns: Turns
  /** The party of the node's operator. */
  operator: string
  migrationId: bigint
  clock: Clock
  /** Writes an act to the node's record, once for each tracking id. */
  record(act: ActRecord): Promise<void>
  newTrackingId?: () => string
}

/** The automations of the configuration, ready to be run by whoever drives them. */
export function prepareAutomations(
  of: AutomationSurroundings,
): ConfiguredAutomations & { context: AutomationContext } {
  const { config, db, participant, view, turns, operator, clock } = of
  const nowMicros = () => clock.nowMicros()
  const acts = createActs({
    db,
    participant,
    view,
    nowMicros,
    newTrackingId: of.newTrackingId ?? randomUUID,
    deduplicationMs: config.deduplicationMs,
    record: of.record,
  })
  const network = automationNetwork(of)
  const context = { participant, view, network, acts, turns, operator, nowMicros }
  return { ...configureAutomations(context, rulesOf(config)), context }
}

/**
 * Runs the automations of the configuration on the wallets of this node. Of nodes that share a
 * database the one that writes runs them.
 */
export async function startNodeAutomations(
  options: {
    config: NodeConfig
    around: Surroundings
    participantDb: Db
    isFollower: boolean
    /** Whether no other node that shares the database has taken over. */
    isWriter(): boolean
    /** Shown among the automations. */
    pruning: WatchedPruning
    onRun(run: RunReport): void
  },
  wallet: Wallet,
  own: AsyncDisposableStack,
): Promise<{ automations?: AutomationRunner }> {
  const { config, around } = options
  if (options.isFollower) return {}
  const { db, participant, view, network: reader, turns, operator, migrationId, clock } = wallet
  const userId = await participant.ownUserId()
  const automations = await openAutomations({
    config: config.wallet,
    db,
    participant,
    view,
    reader,
    turns,
    operator,
    migrationId,
    clock,
    record: ({ party, trackingId, ...after }) =>
      recordAct(options.participantDb, { userId, party, trackingId, after }),
    log: around.logs.named('annals.automations'),
    onRun: options.onRun,
    mayAct: options.isWriter,
    lagMicros: async () => clock.nowMicros() - (await participant.now()),
  })
  own.defer(() => automations.close())
  around.health.addNotices(() => automations.notices())
  return { automations: withPruning(automations, options.pruning) }
}

/** Says what a node without wallets leaves undone, and why. */
export function warnOfIdleAutomations(
  config: NodeConfig,
  { health, logs }: Pick<Surroundings, 'health' | 'logs'>,
  without: { operator: string; why: string },
): void {
  const idle = idleWithoutWallet(rulesOf(config.wallet), without)
  const log = logs.named('annals.automations')
  for (const { name, party, why } of idle) {
    log.warn({ automation: name, party, reason: why }, 'an automation does not run')
  }
  health.addNotices(() => idle.map(({ name, party, why }) => `${name} of ${party}: ${why}`))
}

async function openAutomations(
  of: AutomationSurroundings & {
    log: Logger
    onRun(run: RunReport): void
    /** How far the synchronizer's time lags behind ours. */
    lagMicros(): Promise<bigint>
    mayAct(): boolean
  },
): Promise<AutomationRunner> {
  const { context, automations, idle } = prepareAutomations(of)
  const { clock, log, lagMicros, mayAct, view } = of
  const runner = startAutomations({
    clock,
    log,
    acts: context.acts,
    automations,
    idle,
    done: await selectDone(of.db),
    lagMicros,
    mayAct,
    onRun: of.onRun,
  })
  const stop = new AbortController()
  const following = wakeOnChange(view, runner, stop.signal)
  return {
    ...runner,
    async close() {
      stop.abort()
      await Promise.all([following, runner.close()])
    },
  }
}

export function rulesOf(config: WalletConfig): AutomationRules {
  return {
    sweeps: config.sweeps.map(({ sender, receiver, ...rule }) => ({
      sender,
      receiver,
      maxBalanceUsd: readUsd(rule.maxBalanceUsd),
      minBalanceUsd: readUsd(rule.minBalanceUsd),
      usePreapproval: rule.useTransferPreapproval,
    })),
    autoAccept: config.autoAccept,
    topUp: config.topUp,
    renewal: { lifetimeMs: config.preapprovalLifetimeMs, renewalMs: config.preapprovalRenewalMs },
    pollingIntervalMs: config.pollingIntervalMs,
  }
}

/** A plain decimal; what comes after the tenth place does not count. */
function readUsd(text: string): Decimal {
  const [whole = '0', fraction = ''] = text.split('.')
  return parseDecimal(`${whole}.${fraction.slice(0, 10).padEnd(1, '0')}`) ?? DECIMAL_MAX
}

async function wakeOnChange(
  view: View,
  runner: Pick<AutomationRunner, 'wake'>,
  signal: AbortSignal,
): Promise<void> {
  for (let seen = view.end; await view.waitForChange(seen, signal); seen = view.end) runner.wake()
}

function automationNetwork(of: AutomationSurroundings): AutomationNetwork {
  const { reader, participant, clock, migrationId } = of
  return {
    async terms() {
      const { dso, rules, round, price, isDevNet, terms } = await readNetwork(
        reader,
        clock.nowMicros(),
      )
      const { fees } = terms.configSchedule.initialValue.decentralizedSynchronizer
      const { extraTrafficPrice, minTopupAmount } = fees
      const traffic = { extraTrafficPrice, minTopupAmount, coinPrice: price, isDevNet }
      return { dso, payment: { rules, round }, traffic }
    },
    preapprovalOf: async (receiver) => (await reader.preapproval(receiver))?.contractId,
    async extraTrafficRemainder() {
      const status = await reader.traffic(
        await participant.synchronizerId(),
        await participant.participantId(),
      )
      return status && status.limit - status.consumed
    },
    member: async () => ({
      memberId: `PAR::${await participant.participantId()}`,
      synchronizerId: await participant.synchronizerId(),
      migrationId,
    }),
  }
}
