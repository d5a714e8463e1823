import { type CoinPayload, coin } from '../ledger/coin.ts'
import { type LockedCoinPayload, lockedCoin } from '../ledger/locked-coin.ts'
import { type PreapprovalPayload, preapproval } from '../ledger/preapproval.ts'
import type { Template } from '../ledger/template.ts'
import { type TopUpStatePayload, topUpState } from '../ledger/top-up-state.ts'
import {
  type AcceptedOfferPayload,
  acceptedOffer,
  type TransferOfferPayload,
  transferOffer,
} from '../ledger/transfer-offer.ts'
import type { ActiveContract, CreatedEvent, Update } from './ledger-event.ts'

/**
 * What wallets hold: the active contracts of some parties, as far as a wallet cares, kept by applying
 * one update after another.
 */
export type Holdings = {
  /** An active contract of the snapshot that everything starts from. */
  insert(contract: ActiveContract): void
  /** Applies an update to what the parties hold. */
  apply(update: Update, parties: ReadonlySet<string>): void
  /** Takes over what another one holds of a party. */
  adopt(other: Holdings, party: string): void
  forget(party: string): void
  of<K extends Kind>(kind: K, party: string): readonly Held<K>[]
  find<K extends Kind>(kind: K, contractId: string): Held<K> | undefined
}

export type Held<K extends Kind> = {
  contractId: string
  kind: K
  payload: Payloads[K]
  createdAt: string
  /** Undefined while the contract is on its way between two synchronizers. */
  synchronizerId: string | undefined
  /** As the ledger API told it. */
  event: CreatedEvent
}

type Payloads = {
  coin: CoinPayload
  lockedCoin: LockedCoinPayload
  offer: TransferOfferPayload
  acceptedOffer: AcceptedOfferPayload
  preapproval: PreapprovalPayload
  topUpState: TopUpStatePayload
}
export type Kind = keyof Payloads
type AnyHeld = Held<Kind>

type KindRow<P> = { template: Template<P>; parties(payload: P): string[] }

const KINDS: { [K in Kind]: KindRow<Payloads[K]> } = {
  coin: { template: coin, parties: ({ owner }) => [owner] },
  lockedCoin: { template: lockedCoin, parties: ({ amulet }) => [amulet.owner] },
  offer: { template: transferOffer, parties: ({ sender, receiver }) => [sender, receiver] },
  acceptedOffer: { template: acceptedOffer, parties: ({ sender, receiver }) => [sender, receiver] },
  preapproval: { template: preapproval, parties: ({ receiver, provider }) => [receiver, provider] },
  topUpState: { template: topUpState, parties: ({ validator }) => [validator] },
}

const KIND_BY_TEMPLATE = new Map(
  (Object.keys(KINDS) as Kind[]).map((kind) => [KINDS[kind].template.name, kind]),
)

/** The templates that a wallet reads, by the names that every participant knows them by. */
export const WALLET_TEMPLATE_IDS = Object.values(KINDS).map(({ template }) => idOf(template))

/** `#package-name:Module.Name:Entity`. */
export function idOf({ packageName, name }: { packageName: string; name: string }): string {
  return `#${packageName}:${name}`
}

export function createHoldings(): Holdings {
  const byId = new Map<string, AnyHeld>()
  const byParty = new Map<string, Map<Kind, Map<string, AnyHeld>>>()

  function put(held: AnyHeld, parties: Iterable<string>): void {
    byId.set(held.contractId, held)
    for (const party of parties) listOf(party, held.kind).set(held.contractId, held)
  }

  function listOf(party: string, kind: Kind): Map<string, AnyHeld> {
    const kinds = byParty.get(party) ?? new Map<Kind, Map<string, AnyHeld>>()
    byParty.set(party, kinds)
    const list = kinds.get(kind) ?? new Map<string, AnyHeld>()
    kinds.set(kind, list)
    return list
  }

  function remove(contractId: string): void {
    const held = byId.get(contractId)
    if (held === undefined) return
    byId.delete(contractId)
    for (const party of partiesOf(held)) byParty.get(party)?.get(held.kind)?.delete(contractId)
  }

  function create(event: CreatedEvent, synchronizerId: string | undefined, of?: Parties): void {
    const held = readHeld(event, synchronizerId)
    if (held === undefined) return
    const parties = partiesOf(held).filter((party) => of?.has(party) ?? true)
    if (parties.length > 0) put(held, parties)
  }

  return {
    insert: (contract) => create(contract, contract.synchronizerId),
    apply(update, parties) {
      if (update.kind === 'reassignment') {
        const { created, contractId, synchronizerId } = update
        if (created !== undefined) create(created, synchronizerId, parties)
        else {
          const held = byId.get(contractId)
          if (held !== undefined) {
            const listed = partiesOf(held).filter((party) => parties.has(party))
            put({ ...held, synchronizerId: undefined }, listed)
          }
        }
        return
      }
      for (const event of update.events) {
        if (event.kind === 'created') create(event, update.synchronizerId, parties)
        else if (event.consuming) remove(event.contractId)
      }
    },
    adopt(other, party) {
      for (const kind of Object.keys(KINDS) as Kind[]) {
        for (const held of other.of(kind, party)) put(held, [party])
      }
    },
    forget(party) {
      const kinds = byParty.get(party)
      byParty.delete(party)
      for (const list of kinds?.values() ?? []) {
        for (const held of list.values()) {
          const isLeft = partiesOf(held).some((other) =>
            byParty.get(other)?.get(held.kind)?.has(held.contractId),
          )
          if (!isLeft) byId.delete(held.contractId)
        }
      }
    },
    of: (kind, party) =>
      [...(byParty.get(party)?.get(kind)?.values() ?? [])] as Held<typeof kind>[],
    find<K extends Kind>(kind: K, contractId: string) {
      const held = byId.get(contractId)
      return held?.kind === kind ? (held as Held<K>) : undefined
    },
  }
}

type Parties = ReadonlySet<string>

function partiesOf({ kind, payload }: AnyHeld): string[] {
  const row = KINDS[kind] as KindRow<unknown>
  return [...new Set(row.parties(payload))]
}

/** Undefined for what no wallet reads. */
export function readHeld(
  event: CreatedEvent,
  synchronizerId: string | undefined,
): AnyHeld | undefined {
  const kind = KIND_BY_TEMPLATE.get(event.template)
  if (kind === undefined) return undefined
  const { contractId, createdAt } = event
  const payload = KINDS[kind].template.payload.read(event.payload, event.template)
  return { contractId, kind, payload, createdAt, synchronizerId, event }
}
