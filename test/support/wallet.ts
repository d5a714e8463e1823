import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { NodeConfig } from '../../src/config/node-config.ts'
import type { DbTarget } from '../../src/db/open.ts'
import type { RunningNode } from '../../src/node.ts'
import { DEV_AUDIENCE, mintDevToken, readDevKey } from '../../src/users/dev-key.ts'
import { decimal } from '../../src/values/decimal.ts'
import { walletOpenApi } from '../../src/wallet/openapi.ts'
import type { Cleanup } from './engines.ts'
import { newDirectory, startTestNode, testConfig } from './node.ts'
import { answerChecker, type OpenApiDocument } from './openapi.ts'

export type WalletAnswer = { status: number; body: Record<string, never> & { error?: string } }
export type WalletNode = {
  node: Pick<RunningNode, 'urls'>
  dataDirectory: string
  /** A request to the validator API with the token of a user; the answer is held against the document. */
  ask(user: string, method: string, path: string, body?: unknown): Promise<WalletAnswer>
  /** As `ask`, for requests that succeed. */
  get<T>(user: string, path: string): Promise<T>
  post<T>(user: string, path: string, body?: unknown): Promise<T>
  /** Registers the user and returns its party. */
  register(user: string): Promise<string>
  balance(user: string): Promise<bigint>
  token(user: string): Promise<string>
  /** Moves the simulated time on: "48h". */
  advance(duration: string): Promise<void>
  now(): Promise<bigint>
  /** A request to the ledger API as the administrator. */
  ledger<T>(method: string, path: string, body?: object): Promise<T>
}

export type WalletNodeOptions = {
  config?: Partial<NodeConfig>
  wallet?: Partial<NodeConfig['wallet']>
  target?: DbTarget
  dataDirectory?: string
  simTime?: boolean
  seed?: string
  empty?: boolean
}

/** A node with the seeded network, whose time stands still unless told otherwise. */
export async function startWalletNode(
  t: Cleanup,
  options: WalletNodeOptions = {},
): Promise<WalletNode & { node: RunningNode }> {
  const dataDirectory = options.dataDirectory ?? newDirectory(t)
  const target = options.target === undefined ? {} : { target: options.target }
  const base = testConfig(t, { dataDirectory, ...target })
  const node = await startTestNode(t, {
    dataDirectory,
    ...target,
    empty: options.empty ?? false,
    seed: options.seed ?? 'wallet',
    simTime: options.simTime ?? true,
    config: { ...options.config, wallet: { ...base.wallet, ...options.wallet } },
  })
  return talkTo(node, dataDirectory)
}

export async function talkTo<N extends Pick<RunningNode, 'urls'>>(
  node: N,
  dataDirectory: string,
): Promise<WalletNode & { node: N }> {
  const check = answerChecker(walletOpenApi('test') as unknown as OpenApiDocument)

  async function token(userId: string): Promise<string> {
    const key = await readDevKey(dataDirectory)
    assert.ok(key !== undefined)
    return mintDevToken(key, { userId, ttlSeconds: 600, audience: DEV_AUDIENCE })
  }

  async function ask(user: string, method: string, path: string, body?: unknown) {
    const response = await fetch(node.urls.validator + path, {
      method,
      headers: user === '' ? {} : { authorization: `Bearer ${await token(user)}` },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const type = response.headers.get('content-type') ?? ''
    check({ method, path: path.split('?')[0] ?? '', status: response.status, body: text, type })
    return { status: response.status, body: JSON.parse(text) as WalletAnswer['body'] }
  }

  async function succeed<T>(user: string, method: string, path: string, body?: unknown) {
    const answer = await ask(user, method, path, body)
    assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body as T
  }

  async function ledger<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(node.urls.ledger + path, {
      method,
      headers: { authorization: `Bearer ${await token('participant_admin')}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    assert.equal(response.status, 200, `${method} ${path}: ${text}`)
    return JSON.parse(text) as T
  }

  const get = <T>(user: string, path: string) => succeed<T>(user, 'GET', path)
  return {
    node,
    dataDirectory,
    ask,
    get,
    post: (user, path, body) => succeed(user, 'POST', path, body),
    async register(user) {
      return (await succeed<{ party_id: string }>(user, 'POST', '/v0/register')).party_id
    },
    async balance(user) {
      type Balance = { effective_unlocked_qty: string; effective_locked_qty: string }
      const held = await get<Balance>(user, '/v0/wallet/balance')
      return decimal(held.effective_unlocked_qty) + decimal(held.effective_locked_qty)
    },
    token,
    async advance(duration) {
      await ledger('POST', '/v2/time', { advance: duration })
    },
    async now() {
      const { now } = await ledger<{ now: string }>('GET', '/v2/time')
      return BigInt(new Date(now).getTime()) * 1000n
    },
    ledger,
  }
}

export type LogItem = {
  event_id: string
  transaction_id: string
  transaction_type: string
  amount: string
  description?: string
  tracking_id?: string
  transaction_subtype: { choice: string }
  sender?: { party: string; amount: string }
  receivers?: { party: string; amount: string }[]
}

/** The whole log of a user, read in pages. */
export async function readLog(wallet: WalletNode, user: string, pageSize = 7): Promise<LogItem[]> {
  const entries: LogItem[] = []
  for (;;) {
    const last = entries.at(-1)?.event_id
    const page = await wallet.post<{ items: LogItem[] }>(user, '/v0/wallet/transactions', {
      page_size: pageSize,
      ...(last === undefined ? {} : { begin_after_id: last }),
    })
    entries.push(...page.items)
    if (page.items.length < pageSize) return entries
  }
}

/** Nothing twice, and everything: the amounts of the log add up to what the wallet holds. */
export async function checkLog(wallet: WalletNode, user: string): Promise<LogItem[]> {
  const entries = await readLog(wallet, user)
  assert.equal(new Set(entries.map(({ event_id }) => event_id)).size, entries.length)
  const sum = entries.reduce((total, { amount }) => total + decimal(amount), 0n)
  assert.equal(sum, await wallet.balance(user), `the log of ${user} adds up to its balance`)
  return entries
}

export async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = Date.now() + 15_000
  while (!(await condition())) {
    assert.ok(Date.now() < giveUpAt, `in vain waited for: ${what}`)
    await wait(20)
  }
}
