import { itemKey } from '../history/item-key.ts'
import { badRequest } from '../http/plain-error.ts'
import type { ScanRequest } from '../scan/client.ts'
import { canonicalJson } from '../values/canonical.ts'
import { isObject, parseJsonExactly, printJsonExactly } from '../values/json.ts'

/** What a client asked, taken apart. */
export type Asked = { params: Record<string, string>; query: string; body: string }

/** A read that is passed on to the scans of the network. */
export type Operation = {
  /** In the OpenAPI document and in metrics. */
  id: OperationId
  method: 'GET' | 'POST'
  /** Below `/v0/scan-proxy`; `:name` is a parameter. */
  path: string
  request(asked: Asked): ScanRequest
  /** Whether the answer is a page of updates, which scans that are not at the same height agree on item by item. */
  isPage?: true
  /** What of an answer must be equal; everything unless given. */
  keyOf?: (json: unknown) => string
  /** The answer in the shape of the proxy, where that is another one. */
  shape?: (json: unknown) => unknown
}

/** As on scans of the deployed network, a quarter of it: pages are held and compared here. */
export const PAGE_SIZE_MAX = 250

/** Passed on under the same path, answered as the scans answer. */
const PLAIN = [
  ['scanProxyGetDsoPartyId', 'dso-party-id'],
  ['scanProxyGetDsoInfo', 'dso'],
  ['scanProxyListScans', 'scans'],
  ['scanProxyLookupFeaturedAppRight', 'featured-apps/:provider_party_id'],
  ['scanProxyLookupTransferPreapprovalByParty', 'transfer-preapprovals/by-party/:party'],
  ['scanProxyLookupTransferCommandCounterByParty', 'transfer-command-counter/:party'],
  ['scanProxyLookupTransferCommandStatus', 'transfer-command/status'],
  ['scanProxyListAnsEntries', 'ans-entries'],
  ['scanProxyLookupAnsEntryByParty', 'ans-entries/by-party/:party'],
  ['scanProxyLookupAnsEntryByName', 'ans-entries/by-name/:name'],
  ['scanProxyGetMemberTrafficStatus', 'domains/:domain_id/members/:member_id/traffic-status'],
  ['scanProxyListUnclaimedDevelopmentFundCoupons', 'unclaimed-development-fund-coupons'],
] as const

const PLAIN_POST = [
  ['scanProxyGetAnsRules', 'ans-rules'],
  ['scanProxyGetHoldingsSummaryAt', 'holdings/summary'],
] as const

export type OperationId =
  | (typeof PLAIN)[number][0]
  | (typeof PLAIN_POST)[number][0]
  | 'scanProxyGetAmuletRules'
  | 'scanProxyGetOpenAndIssuingMiningRounds'
  | `scanProxyGetUpdate${'History' | 'ById'}V${1 | 2}`
  | 'scanProxyGetUpdateByHash'

export const OPERATIONS: readonly Operation[] = [
  ...PLAIN.map(
    ([id, path]): Operation => ({
      id,
      method: 'GET',
      path: `/${path}`,
      request: (asked) => ({ method: 'GET', path: fill(`/v0/${path}`, asked) + asked.query }),
    }),
  ),
  ...PLAIN_POST.map(
    ([id, path]): Operation => ({
      id,
      method: 'POST',
      path: `/${path}`,
      request: ({ body }) => ({ method: 'POST', path: `/v0/${path}`, body: readBody(body).text }),
    }),
  ),
  {
    id: 'scanProxyGetAmuletRules',
    method: 'GET',
    path: '/amulet-rules',
    request: () => ({ method: 'POST', path: '/v0/amulet-rules', body: '{}' }),
    shape: (json) => ({ amulet_rules: member(json, 'amulet_rules_update') }),
  },
  {
    id: 'scanProxyGetOpenAndIssuingMiningRounds',
    method: 'GET',
    path: '/open-and-issuing-mining-rounds',
    request: () => ({
      method: 'POST',
      path: '/v0/open-and-issuing-mining-rounds',
      body: '{"cached_open_mining_round_contract_ids":[],"cached_issuing_round_contract_ids":[]}',
    }),
    // How long the answer may be kept differs from scan to scan and is not passed on.
    keyOf: (json) => canonicalJson(roundsOf(json)),
    shape: roundsOf,
  },
  ...([1, 2] as const).flatMap((version): Operation[] => [
    {
      id: `scanProxyGetUpdateHistoryV${version}`,
      method: 'POST',
      path: `/v${version}/updates`,
      request: ({ body }) => ({
        method: 'POST',
        path: `/v${version}/updates`,
        body: readPageBody(body),
      }),
      isPage: true,
    },
    {
      id: `scanProxyGetUpdateByIdV${version}`,
      method: 'GET',
      path: `/v${version}/updates/:update_id`,
      request: (asked) => ({
        method: 'GET',
        path: fill(`/v${version}/updates/:update_id`, asked) + asked.query,
      }),
      // Offsets differ from scan to scan.
      keyOf: (json) => itemKey(printJsonExactly(json)),
    },
  ]),
  {
    id: 'scanProxyGetUpdateByHash',
    method: 'GET',
    path: '/v2/updates/hash/:hash',
    request: (asked) => ({
      method: 'GET',
      path: fill('/v2/updates/hash/:hash', asked) + asked.query,
    }),
    keyOf: (json) => itemKey(printJsonExactly(json)),
  },
]

function fill(path: string, { params }: Asked): string {
  return path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

function readBody(text: string): { text: string; json: Record<string, unknown> } {
  let json: unknown
  try {
    json = parseJsonExactly(text)
  } catch {
    throw badRequest('The request needs a JSON body.')
  }
  if (!isObject(json)) throw badRequest('The request body must be a JSON object.')
  return { text, json }
}

function readPageBody(body: string): string {
  const { text, json } = readBody(body)
  const size = json.page_size
  if (!Number.isInteger(size) || Number(size) < 1 || Number(size) > PAGE_SIZE_MAX) {
    throw badRequest(`page_size must be a whole number from 1 to ${PAGE_SIZE_MAX} here.`)
  }
  return text
}

/** Scans list rounds by their contract ids; the proxy lists them in order. */
function roundsOf(json: unknown): unknown {
  const listOf = (name: string) => {
    const rounds = member(json, name)
    if (!isObject(rounds)) return []
    return Object.keys(rounds)
      .sort()
      .map((id) => rounds[id])
  }
  return {
    open_mining_rounds: listOf('open_mining_rounds'),
    issuing_mining_rounds: listOf('issuing_mining_rounds'),
  }
}

function member(json: unknown, name: string): unknown {
  return isObject(json) ? json[name] : undefined
}
