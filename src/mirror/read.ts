import { SCAN_LIMITS, type ScanAnswer, type ScanRequest } from '../scan/client.ts'
import { canonicalJson } from '../values/canonical.ts'
import { parseJsonExactly } from '../values/json.ts'
import { gather } from './gather.ts'
import type { Peer, Peers } from './peers.ts'
import { agreeOnAnswer, type Sizes } from './quorum.ts'

/** A question to the scans of a network, and how its answers are compared. */
export type AgreedRequest = ScanRequest & {
  /**
   * Brings an answer into a form in which equal meanings are equal texts. Unless given, answers are
   * compared as JSON: key order aside, absent and null alike.
   */
  keyOf?: (json: unknown) => string
  /** Of an answer. */
  bytesMax?: number
  signal?: AbortSignal | undefined
}

/** What a network says. */
export type Agreed =
  /** Enough scans say the same. `text` is the JSON of one of them, `json` what it says, exactly. */
  | { kind: 'agreed'; status: number; text: string; json: unknown; agreeing: Peer[]; sizes: Sizes }
  /**
   * Enough scans refuse alike, such as with the same 404. It is an answer to the question, but no
   * data: nothing of it may be stored.
   */
  | { kind: 'refused'; status: number; text: string; agreeing: Peer[]; sizes: Sizes }
  /** Too few answered, or what they said differs. Nothing is known; ask again later. */
  | { kind: 'none'; reason: string; answered: number; sizes: Sizes }

/** How often the peers are asked anew when they do not agree, as deployed validators do. */
const ATTEMPTS_MAX = 3

/**
 * Reads from the scans of a network so that no single one has to be trusted: asks 2f+1, and returns
 * what f+1 of them say alike. Others are asked when some fail. Never throws for what peers do.
 */
export async function readAgreed(peers: Peers, request: AgreedRequest): Promise<Agreed> {
  let outcome = await readOnce(peers, request)
  for (let attempt = 1; outcome.kind === 'none' && attempt < ATTEMPTS_MAX; attempt += 1) {
    // With too few that answer, asking again at once would change nothing.
    if (outcome.answered < outcome.sizes.need || request.signal?.aborted) break
    outcome = await readOnce(peers, request)
  }
  return outcome
}

type Compared = {
  key: string
  answer: ScanAnswer & { kind: 'answer' }
  text: string
  json: unknown
}

async function readOnce(peers: Peers, request: AgreedRequest): Promise<Agreed> {
  const sizes = peers.sizes()
  let answered = 0
  const limits = { ...SCAN_LIMITS, bytesMax: request.bytesMax ?? SCAN_LIMITS.bytesMax }
  const agreed = await gather<Compared, Agreed & { key: string }>({
    peers,
    signal: request.signal,
    async ask(peer, signal) {
      const answer = await peers.ask(peer, request, { limits, signal })
      const compared = compare(answer, request)
      if (compared !== undefined) answered += 1
      return compared
    },
    decide(answers) {
      const listed = [...answers].map(([peer, { key }]) => ({ peer, key }))
      const verdict = agreeOnAnswer(listed, sizes.need)
      if (verdict.agreed === undefined) return undefined
      for (const peer of verdict.dissenting) peers.noteDissent(peer)
      const { agreeing } = verdict
      const { answer, text, json, key } = answers.get(agreeing[0] as Peer) as Compared
      const { status } = answer
      return {
        result:
          status >= 200 && status < 300
            ? { kind: 'agreed', status, text, json, agreeing, sizes, key }
            : { kind: 'refused', status, text, agreeing, sizes, key },
      }
    },
    onLate(peer, { key }, result) {
      if (key !== result.key) peers.noteDissent(peer)
    },
  })
  if (agreed !== undefined) return agreed
  return { kind: 'none', reason: explain(sizes, answered), answered, sizes }
}

function explain({ known, need }: Sizes, answered: number): string {
  return answered < need
    ? `Only ${answered} of ${known} scans can be used, which are fewer than the ${need} that must agree.`
    : `${answered} of ${known} scans answered, but no ${need} of them alike.`
}

/** Undefined for what can be compared with nothing: faults, overload, and data that is no JSON. */
function compare(answer: ScanAnswer, request: AgreedRequest): Compared | undefined {
  if (answer.kind === 'fault' || answer.status === 429 || answer.status >= 500) return undefined
  const text = answer.bytes.toString('utf8')
  const isData = answer.status >= 200 && answer.status < 300
  try {
    const json = parseJsonExactly(text)
    const key = isData && request.keyOf !== undefined ? request.keyOf(json) : canonicalJson(json)
    return { key: `${answer.status} ${key}`, answer, text, json }
  } catch {
    return isData ? undefined : { key: `${answer.status} ${text}`, answer, text, json: undefined }
  }
}
