import type { WalletConfig } from '../../src/config/node-config.ts'
import { migrate, readMigrations } from '../../src/db/migrate.ts'
import { openDb } from '../../src/db/open.ts'
import { type HttpAnswer, type HttpCall, type HttpRequest, NoAnswer } from '../../src/http/call.ts'
import { NETWORK_TRAFFIC, type TrafficParameters } from '../../src/ledger/rules.ts'
import { openWorld, type World } from '../../src/rehearsal/world.ts'
import { decimal } from '../../src/values/decimal.ts'
import type { ActRecord } from '../../src/wallet/acts.ts'
import type { AutomationName } from '../../src/wallet/automation.ts'
import { NAMESPACE, partyOf, START_MICROS } from './embedded-ledger.ts'
import type { Cleanup, TestEngine } from './engines.ts'

export const OPERATOR = `operator::${NAMESPACE}`
export const [ALICE, BOB, CAROL] = ['alice', 'bob', 'carol'].map(partyOf) as [
  string,
  string,
  string,
]

export type DrivenOptions = {
  config?: Partial<WalletConfig>
  wallets?: string[]
  price?: string
  isDevNet?: boolean
  traffic?: Partial<TrafficParameters>
  trafficState?: () => { purchased: bigint; consumed: bigint }
}

export type DrivenWallets = World & {
  records: ActRecord[]
  /** So many records fail, as after a crash before them. */
  failRecord: number
  /** So many commands are carried out without an answer; so many are not even carried out. */
  loseAnswers: number
  loseRequests: number
  /** While it is, nobody gives the wallets a token. */
  isProviderAway: boolean
  /** Runs an automation until it has nothing to do; returns what it did. */
  run(name: AutomationName, party?: string): Promise<string[]>
  /** Runs all of them until none has anything to do. */
  runAll(): Promise<string[]>
  balance(party: string): Promise<bigint>
}

export const WALLET_CONFIG: WalletConfig = {
  enabled: true,
  users: [],
  sweeps: [],
  autoAccept: [],
  topUp: undefined,
  pollingIntervalMs: 30_000,
  deduplicationMs: 86_400_000,
  preapprovalLifetimeMs: 90 * 86_400_000,
  preapprovalRenewalMs: 30 * 86_400_000,
  participantUrl: undefined,
  scanUrl: undefined,
}

/** Wallets of the operator and of some people, at the start of 2026; time and automations are driven. */
export async function openDrivenWallets(
  t: Cleanup,
  engine: TestEngine,
  options: DrivenOptions = {},
): Promise<DrivenWallets> {
  // Closed before the databases are removed.
  const parts = new AsyncDisposableStack()
  t.after(() => parts.disposeAsync())
  const open = async (name: 'app' | 'participant') => {
    const db = await openDb(await engine.newTarget(t))
    parts.defer(() => db.close())
    await migrate(db, await readMigrations(name))
    return db
  }
  const databases = { app: await open('app'), participant: await open('participant') }
  const records: ActRecord[] = []
  const faults = { failRecord: 0, loseAnswers: 0, loseRequests: 0, isProviderAway: false }
  let ids = 0
  const { trafficState } = options
  const world = await openWorld({
    databases,
    config: { ...WALLET_CONFIG, ...options.config },
    seed: 'test',
    startMicros: START_MICROS,
    dso: partyOf('DSO'),
    operator: OPERATOR,
    wallets: options.wallets ?? [ALICE, BOB],
    others: [ALICE, BOB, CAROL],
    payer: partyOf('payer'),
    price: decimal(options.price ?? '0.15'),
    traffic: { ...NETWORK_TRAFFIC, ...options.traffic },
    isDevNet: options.isDevNet ?? false,
    newTrackingId() {
      ids += 1
      return `tracking-${ids}`
    },
    async record(act) {
      if (faults.failRecord > 0) {
        faults.failRecord -= 1
        throw new Error('There is no room for the record.')
      }
      records.push(act)
    },
    onCall: (request, call) => callWithFaults(faults, request, call),
    ...(trafficState === undefined ? {} : { trafficState }),
  })
  parts.defer(() => world.close())

  async function run(name: AutomationName, party?: string): Promise<string[]> {
    const did: string[] = []
    await world.settle()
    for (const automation of world.automations.automations()) {
      if (automation.name !== name || (party ?? automation.party) !== automation.party) continue
      for (;;) {
        const outcome = await automation.run()
        if (outcome.kind === 'wait') break
        did.push(outcome.done.what)
      }
    }
    return did
  }

  return Object.assign(faults, {
    ...world,
    records,
    run,
    async runAll() {
      const did: string[] = []
      for (let before = -1; before < did.length; ) {
        before = did.length
        for (const { name, party } of world.automations.automations()) {
          did.push(...(await run(name, party)))
        }
      }
      return did
    },
    async balance(party: string) {
      await world.settle()
      const coins = world.view.coins(party)
      return coins.reduce((sum, { payload }) => sum + payload.amount.initialAmount, 0n)
    },
  })
}

async function callWithFaults(
  faults: { loseAnswers: number; loseRequests: number; isProviderAway: boolean },
  request: HttpRequest,
  call: HttpCall,
): Promise<HttpAnswer> {
  if (faults.isProviderAway) {
    throw Object.assign(new Error('The provider gives no token.'), { name: 'NoServiceToken' })
  }
  if (!request.path.startsWith('/v2/commands/submit')) return call(request)
  if (faults.loseRequests > 0) {
    faults.loseRequests -= 1
    throw new NoAnswer('the request got lost')
  }
  const answer = await call(request)
  if (faults.loseAnswers === 0) return answer
  faults.loseAnswers -= 1
  throw new NoAnswer('the answer got lost')
}
