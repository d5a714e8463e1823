import type { FastifyInstance, FastifyRequest } from 'fastify'
import { badRequest, notFound } from '../http/plain-error.ts'
import { blobOf } from '../ledger/blob.ts'
import type { Contract } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { preapproval } from '../ledger/preapproval.ts'
import { openRound } from '../ledger/round.ts'
import { amuletRules } from '../ledger/rules.ts'
import { trafficOf } from '../ledger/traffic-status.ts'
import { printInThrees } from '../values/instant.ts'
import { describeJson } from '../values/json.ts'
import { type Body, readBody } from './requests.ts'

/** The coin network on the node's own ledger. */
export type ScanNetwork = {
  ledger: Ledger
  /** The party that governs the network. */
  dso: string
}

/** Caches of clients are short; a longer list is not one of these contracts' ids. */
const CACHED_IDS_MAX = 1000
const MEMBER_ID = /^(PAR|MED)::.+::[^:]+$/

/** What the network's contracts say: rules, rounds, preapprovals, traffic; none of it needs a token. */
export async function networkRoutes(
  app: FastifyInstance,
  network: ScanNetwork | undefined,
): Promise<void> {
  app.get('/v0/dso-party-id', async () => {
    const { dso } = await requireNetwork(network)
    return { dso_party_id: dso }
  })

  app.post('/v0/amulet-rules', async (request) => {
    const body = readBody(request.body as Buffer, '{}')
    const cached = new Set([readOptionalText(body, 'cached_amulet_rules_contract_id')])
    readOptionalText(body, 'cached_amulet_rules_domain_id')
    const { rules } = await requireNetwork(network)
    return { amulet_rules_update: maybeCached(rules, cached) }
  })

  app.post('/v0/open-and-issuing-mining-rounds', async (request) => {
    const body = readBody(request.body as Buffer, ROUNDS_EXAMPLE)
    const cached = readIds(body, 'cached_open_mining_round_contract_ids')
    readIds(body, 'cached_issuing_round_contract_ids')
    const { ledger, dso } = await requireNetwork(network)
    const rounds = await ledger.contractsOf(openRound, dso)
    const now = ledger.clock.nowMicros()
    return {
      time_to_live_in_microseconds: Number(untilNextRound(rounds, now)),
      open_mining_rounds: Object.fromEntries(
        rounds.map((round) => [round.contractId, maybeCached(round, cached)]),
      ),
      issuing_mining_rounds: {},
    }
  })

  app.get('/v0/transfer-preapprovals/by-party/:party', async (request) => {
    const { party } = request.params as { party: string }
    const { ledger, dso } = await requireNetwork(network)
    const now = ledger.clock.nowMicros()
    const [newest] = (await ledger.contractsOf(preapproval, party))
      .filter(({ payload }) => payload.receiver === party && payload.dso === dso)
      .filter(({ payload }) => payload.expiresAt > now)
      .toSorted((a, b) => compare(b.payload.validFrom, a.payload.validFrom))
    if (newest === undefined) {
      throw notFound(
        `No transfer preapproval found for party: ${party}. The receiver creates one in its wallet.`,
      )
    }
    return { transfer_preapproval: maybeCached(newest, NOTHING_CACHED) }
  })

  app.get('/v0/domains/:domain_id/members/:member_id/traffic-status', async (request) => {
    const { domainId, memberId } = readMember(request)
    const { ledger, dso } = await requireNetwork(network)
    const found =
      domainId === ledger.synchronizers[0] ? await trafficOf(ledger, { dso, memberId }) : undefined
    if (found === undefined) {
      throw notFound(`No traffic state found for member: ${memberId} on domain: ${domainId}.`)
    }
    return {
      traffic_status: {
        actual: { total_consumed: Number(found.consumed), total_limit: Number(found.purchased) },
        target: { total_purchased: Number(found.purchased) },
      },
    }
  })
}

const ROUNDS_EXAMPLE =
  '{"cached_open_mining_round_contract_ids":[],"cached_issuing_round_contract_ids":[]}'
const NOTHING_CACHED: ReadonlySet<string> = new Set()

async function requireNetwork(network: ScanNetwork | undefined) {
  if (network === undefined) {
    throw notFound(
      'This node has no ledger of its own, so it cannot tell what the network stands at. Ask a scan of the network.',
    )
  }
  const { ledger, dso } = network
  await ledger.refresh()
  const [rules] = await ledger.contractsOf(amuletRules, dso)
  if (rules === undefined) {
    throw notFound(
      "There is no coin network on this node's ledger. Start an empty node without --empty to found one.",
    )
  }
  return { ledger, dso, rules }
}

/** The contract itself is left out for clients that have it; where it is, is always said. */
function maybeCached(contract: Contract, cached: ReadonlySet<string | undefined>): object {
  const { entry, contractId, payload, createdAt, synchronizerId } = contract
  const full = {
    template_id: entry.id,
    contract_id: contractId,
    payload: entry.template.payload.toJson(payload),
    created_event_blob: blobOf(contract),
    created_at: printInThrees(createdAt),
  }
  return {
    ...(cached.has(contractId) ? {} : { contract: full }),
    ...(synchronizerId === undefined ? {} : { domain_id: synchronizerId }),
  }
}

type Round = { payload: { opensAt: bigint; tickDuration: { microseconds: bigint } } }

/** The network opens the next round a tick after the newest; never in the past. */
function untilNextRound(rounds: readonly Round[], nowMicros: bigint): bigint {
  const next = rounds.map(({ payload }) => payload.opensAt + payload.tickDuration.microseconds)
  const latest = next.reduce((newest, time) => (time > newest ? time : newest), nowMicros)
  return latest - nowMicros
}

function readMember(request: FastifyRequest): { domainId: string; memberId: string } {
  const { domain_id: domainId, member_id: memberId } = request.params as Record<string, string>
  if (domainId === undefined || !/^[^:]+::[^:]+$/.test(domainId)) {
    throw badRequest('domain_id must be a name and a fingerprint, such as global-domain::1220….')
  }
  if (memberId === undefined || !MEMBER_ID.test(memberId)) {
    throw badRequest(
      'member_id must be a code, a name and a fingerprint, such as PAR::participant::1220….',
    )
  }
  return { domainId, memberId }
}

function readOptionalText(body: Body, field: string): string | undefined {
  const value = body[field] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  throw badRequest(`${field} must be a string, not ${describeJson(value)}.`)
}

function readIds(body: Body, field: string): ReadonlySet<string> {
  const value = body[field] ?? []
  if (!Array.isArray(value)) {
    throw badRequest(`${field} must be a list of contract ids, not ${describeJson(value)}.`)
  }
  const wrong = value.find((id) => typeof id !== 'string')
  if (wrong !== undefined) {
    throw badRequest(`${field} must hold contract ids as strings, not ${describeJson(wrong)}.`)
  }
  if (value.length > CACHED_IDS_MAX) {
    throw badRequest(`${field} must not have more than ${CACHED_IDS_MAX} contract ids.`)
  }
  return new Set(value as string[])
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
