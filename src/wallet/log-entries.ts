import { sendPreapproved } from '../ledger/preapproval.ts'
import { tapCoins, transferCoins } from '../ledger/rules.ts'
import { buyTraffic } from '../ledger/traffic.ts'
import { type Decimal, printDecimal } from '../values/decimal.ts'
import type { ValueType } from '../values/value-type.ts'
import { type Holdings, readHeld } from './holdings.ts'
import type { ExercisedEvent, LedgerEvent, Transaction } from './ledger-event.ts'

/**
 * What a transaction means to one wallet: the entries of its log. The amounts of a wallet's entries add
 * up to what its coins have changed by, always: what no known choice explains becomes an entry of its own.
 */
export type LogEntry = {
  party: string
  eventId: string
  /** Empty unless the party gave the command itself. */
  commandId: string
  recordTime: string
  item: LogItem
}

export type PartyAmount = { party: string; amount: string }

/** As the wallet API shows it. */
export type LogItem = {
  transaction_type: 'transfer' | 'balance_change' | 'unknown'
  transaction_subtype: { template_id: string; choice: string; amulet_operation: string }
  event_id: string
  transaction_id: string
  date: string
  sender?: PartyAmount
  receivers?: PartyAmount[]
  description?: string
  tracking_id?: string
  traffic_purchased?: string
  /** What the wallet has gained or, below zero, lost. */
  amount: string
}

export function entriesOf(
  transaction: Transaction,
  party: string,
  before: Pick<Holdings, 'find'>,
): LogEntry[] {
  const known = transaction.events.flatMap((event) =>
    event.kind === 'exercised' ? (readAct(event, transaction, party) ?? []) : [],
  )
  const explained = known.reduce((sum, { amount }) => sum + amount, 0n)
  const rest = changeOf(transaction, party, before) - explained
  const acts = rest === 0n ? known : [...known, unexplained(transaction, party, rest)]
  return acts.map(({ event, amount, ...item }) => {
    const eventId = `${transaction.updateId}:${event.nodeId}`
    const root = rootOf(event, transaction.events)
    return {
      party,
      eventId,
      commandId: transaction.commandId,
      recordTime: transaction.recordTime,
      item: {
        transaction_type: item.type,
        transaction_subtype: {
          template_id: root.templateId,
          choice: root.kind === 'exercised' ? root.choice : 'Create',
          amulet_operation: item.operation,
        },
        event_id: eventId,
        transaction_id: transaction.updateId,
        date: transaction.recordTime,
        ...item.fields,
        amount: printDecimal(amount),
      },
    }
  })
}

type Act = {
  event: LedgerEvent
  type: LogItem['transaction_type']
  operation: string
  amount: Decimal
  fields: Partial<LogItem>
}

function readAct(event: ExercisedEvent, transaction: Transaction, party: string): Act | undefined {
  switch (event.choice) {
    case transferCoins.name:
      return transferAct(event, transaction, party)
    case tapCoins.name: {
      const { receiver, amount } = argumentOf(event, tapCoins)
      if (receiver !== party) return undefined
      const receivers = [{ party, amount: printDecimal(amount) }]
      return { event, type: 'balance_change', operation: 'tap', amount, fields: { receivers } }
    }
    case buyTraffic.name: {
      const { provider, trafficAmount } = argumentOf(event, buyTraffic)
      if (provider !== party) return undefined
      const { amuletPaid } = buyTraffic.result.read(event.result, event.choice)
      const sender = { party, amount: printDecimal(-amuletPaid) }
      const fields = { sender, receivers: [], traffic_purchased: String(trafficAmount) }
      return { event, type: 'transfer', operation: 'buy_traffic', amount: -amuletPaid, fields }
    }
    default:
      return undefined
  }
}

function transferAct(
  event: ExercisedEvent,
  { events }: Transaction,
  party: string,
): Act | undefined {
  const { transfer } = argumentOf(event, transferCoins)
  const received = new Map<string, Decimal>()
  for (const { receiver, amount } of transfer.outputs) {
    if (receiver === transfer.sender) continue
    received.set(receiver, (received.get(receiver) ?? 0n) + amount)
  }
  if (transfer.sender !== party && !received.has(party)) return undefined
  const paid = [...received.values()].reduce((sum, amount) => sum + amount, 0n)
  const amount = transfer.sender === party ? -paid : (received.get(party) ?? 0n)
  return {
    event,
    type: 'transfer',
    operation: 'transfer',
    amount,
    fields: {
      sender: { party: transfer.sender, amount: printDecimal(-paid) },
      receivers: [...received].map(([receiver, sum]) => ({
        party: receiver,
        amount: printDecimal(sum),
      })),
      ...aboutTransfer(rootOf(event, events)),
    },
  }
}

/** What the choice that led to the transfer says of it. */
function aboutTransfer(root: LedgerEvent): Partial<LogItem> {
  if (root.kind !== 'exercised') return {}
  const { description } = (root.argument ?? {}) as { description?: unknown }
  const { trackingInfo } = (root.result ?? {}) as { trackingInfo?: { trackingId?: unknown } }
  const trackingId = trackingInfo?.trackingId
  return {
    ...(root.choice === sendPreapproved.name && typeof description === 'string'
      ? { description }
      : {}),
    ...(typeof trackingId === 'string' ? { tracking_id: trackingId } : {}),
  }
}

/** Coins moved in a way that no choice above tells of. */
function unexplained({ events }: Transaction, party: string, amount: Decimal): Act {
  const [first] = events
  if (first === undefined) throw new TypeError('A transaction that changes coins has events.')
  const own = events.find((event) => event.witnesses.includes(party)) ?? first
  return { event: own, type: 'unknown', operation: 'other', amount, fields: {} }
}

/** By how much the transaction has changed what the party's coins, locked ones among them, hold. */
function changeOf({ events }: Transaction, party: string, before: Pick<Holdings, 'find'>): Decimal {
  const made = new Map<string, Decimal>()
  let change = 0n
  for (const event of events) {
    if (event.kind === 'created') {
      const held = readHeld(event, undefined)
      const coin = held && coinOf(held)
      if (coin === undefined || coin.owner !== party) continue
      made.set(event.contractId, coin.amount)
      change += coin.amount
    } else if (event.consuming) {
      const held =
        before.find('coin', event.contractId) ?? before.find('lockedCoin', event.contractId)
      const coin = held && coinOf(held)
      change -= made.get(event.contractId) ?? (coin?.owner === party ? coin.amount : 0n)
    }
  }
  return change
}

function coinOf(held: {
  kind: string
  payload: unknown
}): { owner: string; amount: Decimal } | undefined {
  type Coin = { owner: string; amount: { initialAmount: Decimal } }
  const coin =
    held.kind === 'coin'
      ? (held.payload as Coin)
      : held.kind === 'lockedCoin'
        ? (held.payload as { amulet: Coin }).amulet
        : undefined
  return coin && { owner: coin.owner, amount: coin.amount.initialAmount }
}

/** The outermost choice of which the event is a part. */
function rootOf(event: LedgerEvent, events: readonly LedgerEvent[]): LedgerEvent {
  return (
    events.find(
      (candidate) =>
        candidate.kind === 'exercised' &&
        candidate.nodeId <= event.nodeId &&
        candidate.lastDescendantNodeId >= event.nodeId,
    ) ?? event
  )
}

function argumentOf<A>(event: ExercisedEvent, choice: { argument: ValueType<A> }): A {
  return choice.argument.read(event.argument, event.choice)
}
