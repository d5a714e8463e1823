import type { HttpCall } from '../http/call.ts'
import { NoAnswer } from '../http/call.ts'
import { type PreapprovalPayload, preapproval } from '../ledger/preapproval.ts'
import { type OpenRoundPayload, openRound } from '../ledger/round.ts'
import { type AmuletRulesPayload, amuletRules } from '../ledger/rules.ts'
import type { Decimal } from '../values/decimal.ts'
import { TypeMismatch, type ValueType } from '../values/value-type.ts'

/** The network's public facts, as a scan tells them. Every question throws `NetworkAway` when there is no answer. */
export type NetworkReader = {
  dso(): Promise<string>
  rules(): Promise<NetworkContract<AmuletRulesPayload>>
  /** The newest round that is open at the time, with the price of the coin. */
  round(nowMicros: bigint): Promise<NetworkContract<OpenRoundPayload>>
  /** The preapproval of a receiver that has not ended; undefined when it has given none. */
  preapproval(receiver: string): Promise<NetworkContract<PreapprovalPayload> | undefined>
  /** Undefined while the network knows nothing of the member. */
  traffic(synchronizerId: string, participantId: string): Promise<TrafficStatus | undefined>
}

export type NetworkContract<P> = { contractId: string; payload: P }

/** Bytes of extra traffic. */
export type TrafficStatus = { consumed: bigint; purchased: bigint; limit: bigint }

/** What a payment stands on. */
export type Network = {
  dso: string
  rules: string
  round: string
  roundNumber: bigint
  /** USD for a coin. */
  price: Decimal
  isDevNet: boolean
  synchronizerId: string
  terms: AmuletRulesPayload
}

/** No scan, or no network behind it. */
export class NetworkAway extends Error {
  override name = 'NetworkAway'
}

type Json = Record<string, unknown>
type Found = { contract?: { contract_id: string; payload: unknown } }

export function openNetworkReader(call: HttpCall): NetworkReader {
  async function ask(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<Json | undefined> {
    let answer: { status: number; body: string }
    try {
      answer = await call({
        method,
        path,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch (error) {
      if (error instanceof NoAnswer) throw new NetworkAway(`The scan is away: ${error.message}`)
      throw error
    }
    if (answer.status === 404) return undefined
    const json = parse(answer.body)
    if (answer.status === 200 && json !== undefined) return json
    throw new NetworkAway(`The scan answered with status ${answer.status} to ${path}.`)
  }

  async function rules(): Promise<NetworkContract<AmuletRulesPayload>> {
    const json = await ask('POST', '/v0/amulet-rules', {})
    if (json === undefined) throw noNetwork()
    return contractOf(json.amulet_rules_update, amuletRules.payload)
  }

  return {
    rules,
    async dso() {
      const json = await ask('GET', '/v0/dso-party-id')
      if (typeof json?.dso_party_id !== 'string') throw noNetwork()
      return json.dso_party_id
    },
    async round(nowMicros) {
      const json = await ask('POST', '/v0/open-and-issuing-mining-rounds', {
        cached_open_mining_round_contract_ids: [],
        cached_issuing_round_contract_ids: [],
      })
      if (json === undefined) throw noNetwork()
      const rounds = Object.values((json.open_mining_rounds ?? {}) as Json)
        .map((found) => contractOf(found, openRound.payload))
        .filter(({ payload }) => payload.opensAt <= nowMicros)
        .toSorted((a, b) => (a.payload.round.number < b.payload.round.number ? 1 : -1))
      const [newest] = rounds
      if (newest === undefined) throw new NetworkAway('No round of the network is open now.')
      return newest
    },
    async preapproval(receiver) {
      const path = `/v0/transfer-preapprovals/by-party/${encodeURIComponent(receiver)}`
      const json = await ask('GET', path)
      return json && contractOf(json.transfer_preapproval, preapproval.payload)
    },
    async traffic(synchronizerId, participantId) {
      const member = encodeURIComponent(`PAR::${participantId}`)
      const path = `/v0/domains/${encodeURIComponent(synchronizerId)}/members/${member}/traffic-status`
      const json = await ask('GET', path)
      if (json === undefined) return undefined
      type Status = {
        actual: { total_consumed: number; total_limit: number }
        target: { total_purchased: number }
      }
      const { actual, target } = json.traffic_status as Status
      return {
        consumed: BigInt(actual.total_consumed),
        limit: BigInt(actual.total_limit),
        purchased: BigInt(target.total_purchased),
      }
    },
  }
}

/** Everything that a payment names, read at once. */
export async function readNetwork(reader: NetworkReader, nowMicros: bigint): Promise<Network> {
  const [rules, round] = await Promise.all([reader.rules(), reader.round(nowMicros)])
  const { initialValue } = rules.payload.configSchedule
  return {
    dso: rules.payload.dso,
    rules: rules.contractId,
    round: round.contractId,
    roundNumber: round.payload.round.number,
    price: round.payload.amuletPrice,
    isDevNet: rules.payload.isDevNet,
    synchronizerId: initialValue.decentralizedSynchronizer.activeSynchronizer,
    terms: rules.payload,
  }
}

function contractOf<P>(found: unknown, type: ValueType<P>): NetworkContract<P> {
  const { contract } = (found ?? {}) as Found
  if (contract === undefined) throw new NetworkAway('The scan answered without a contract.')
  try {
    return {
      contractId: contract.contract_id,
      payload: type.read(contract.payload, 'payload'),
    }
  } catch (error) {
    if (!(error instanceof TypeMismatch)) throw error
    throw new NetworkAway(`The scan tells of a contract that is not understood: ${error.message}.`)
  }
}

function noNetwork(): NetworkAway {
  return new NetworkAway(
    'There is no coin network behind the scan. Name another scan with annals.wallet.scanUrl, or start an empty node without --empty.',
  )
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
