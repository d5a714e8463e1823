import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import { addSourceOptions } from './check-config.ts'
import { addDataOption } from './commands.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'
import {
  type ConnectionOptions,
  connect,
  EXIT_CODES_HELP,
  type LedgerClient,
  NodeRefusal,
  printNote,
} from './ledger-client.ts'
import { type CliContext, CommandError } from './output.ts'

type DemoOptions = ConfigurationArguments &
  ConnectionOptions & { rate: number; count: number | undefined }
type Coin = { contractId: string; amount: bigint }
type CreatedEvent = {
  contractId: string
  templateId: string
  createArgument: { owner: string; amount: { initialAmount: string } }
}
type Event = { CreatedEvent?: CreatedEvent; ArchivedEvent?: { contractId: string } }
type World = {
  client: LedgerClient
  dso: string
  people: string[]
  rules: string
  round: string
  coins: Map<string, Coin[]>
  /** Payments that were refused one after the other. */
  refusals: number
}

const COIN = '#splice-amulet:Splice.Amulet:Amulet'
const RULES = '#splice-amulet:Splice.AmuletRules:AmuletRules'
const ROUND = '#splice-amulet:Splice.Round:OpenMiningRound'

const RATE_MAX = 10_000
/** Payments on their way at a time: enough to share commits, few enough to stop quickly. */
const UNDER_WAY_MAX = 32
/** So many coins of one owner are spent together, so that they do not become ever smaller. */
const INPUTS_MAX = 3
/** In units of 10^-10: people tap this much when they run low. */
const TAP = 1000n * 10n ** 10n
/** Somebody else spends the same coins now and then; when nothing goes through any more, it is told. */
const REFUSALS_MAX = 100
const TOKEN_SECONDS = 86_400

const EXAMPLES = `
Examples:
  annals demo
  annals demo --rate 50
  annals demo --url http://localhost:7575 --count 1000

Lets the people of a running node's seeded network pay each other until Ctrl-C. Without a token it
makes one with the key in the node's data directory.
${EXIT_CODES_HELP}`

/** annals demo: keeps a network lively. */
export const demoCommand = (context: CliContext): Command =>
  addSourceOptions(addDataOption(new Command('demo')))
    .description('let the people of the seeded network pay each other')
    .option('--rate <number>', 'payments a second', parseRate, 10)
    .option('--count <number>', 'stop after so many payments', parseCount)
    .option('--url <url>', 'ledger API of the node (or ANNALS_URL)')
    .option('--token <token>', 'bearer token (better: ANNALS_TOKEN)')
    .addHelpText('after', EXAMPLES)
    .action((options: DemoOptions) => runDemo(context, options))

async function runDemo(context: CliContext, options: DemoOptions): Promise<void> {
  const token = options.token ?? context.env.ANNALS_TOKEN ?? (await ownToken(context, options))
  const client = connect(context, { ...options, ...(token === undefined ? {} : { token }) })
  const world = await findWorld(client)
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  process.once('SIGTERM', () => stop.abort())
  const paid = await payAtRate(world, options, stop.signal)
  printNote(context, `${paid} payments were made.`)
}

async function payAtRate(world: World, options: DemoOptions, signal: AbortSignal): Promise<number> {
  const underWay = new Set<Promise<void>>()
  const busy = new Set<string>()
  let failure: unknown
  let paid = 0
  const startedAt = performance.now()
  const { count = Number.POSITIVE_INFINITY } = options
  for (let n = 0; paid < count; n += 1) {
    const dueAt = startedAt + (n * 1000) / options.rate
    await wait(Math.max(0, dueAt - performance.now()), undefined, { signal }).catch(() => {})
    while (
      underWay.size >= UNDER_WAY_MAX ||
      busy.size >= world.people.length ||
      (underWay.size > 0 && paid + underWay.size >= count)
    ) {
      await Promise.race(underWay)
    }
    if (signal.aborted || failure !== undefined || paid >= count) break
    const sender = pick(world.people.filter((person) => !busy.has(person)))
    busy.add(sender)
    const payment = pay(world, sender)
      .then((isPaid) => {
        if (isPaid) paid += 1
      })
      .catch((error: unknown) => {
        failure ??= error
      })
      .finally(() => {
        underWay.delete(payment)
        busy.delete(sender)
      })
    underWay.add(payment)
  }
  await Promise.all(underWay)
  if (failure !== undefined) throw failure
  return paid
}

/**
 * Whether somebody was paid. Taps when the purse is empty. Somebody else may spend the same coins or
 * open another round; then they are read anew.
 */
async function pay(world: World, sender: string): Promise<boolean> {
  const { rules, round, people } = world
  const purse = (world.coins.get(sender) ?? []).toSorted((a, b) => (a.amount > b.amount ? -1 : 1))
  const inputs = purse.slice(0, INPUTS_MAX)
  const held = inputs.reduce((sum, { amount }) => sum + amount, 0n)
  const amount = BigInt(1 + Math.floor(Math.random() * 100_000)) * 10n ** 6n
  const isTap = held < amount
  const receiver = isTap ? sender : pick(people.filter((person) => person !== sender))
  const choiceArgument = isTap
    ? { receiver, amount: print(TAP), openRound: round }
    : {
        transfer: {
          sender,
          provider: sender,
          inputs: inputs.map(({ contractId }) => ({ tag: 'InputAmulet', value: contractId })),
          outputs: [{ receiver, amount: print(amount), lock: null }],
        },
        openMiningRound: round,
      }
  const choice = isTap ? 'AmuletRules_DevNet_Tap' : 'AmuletRules_Transfer'
  try {
    await submit(world, {
      actAs: [...new Set([sender, receiver])],
      command: { templateId: RULES, contractId: rules, choice, choiceArgument },
    })
  } catch (error) {
    if (!(error instanceof NodeRefusal) || ![404, 409].includes(error.status)) throw error
    world.refusals += 1
    if (world.refusals > REFUSALS_MAX) throw error
    const [round] = await active(world.client, world.dso, ROUND)
    if (round !== undefined) world.round = round.contractId
    world.coins.set(sender, await coinsOf(world.client, sender))
    return false
  }
  world.refusals = 0
  return !isTap
}

async function submit(
  { client, coins }: World,
  { actAs, command }: { actAs: string[]; command: object },
): Promise<void> {
  type Answer = { transaction: { events: Event[] } }
  const { transaction } = await client.request<Answer>(
    'POST',
    '/v2/commands/submit-and-wait-for-transaction',
    { commands: { commandId: randomUUID(), actAs, commands: [{ ExerciseCommand: command }] } },
  )
  const gone = new Set(transaction.events.map(({ ArchivedEvent }) => ArchivedEvent?.contractId))
  for (const person of actAs) {
    const kept = (coins.get(person) ?? []).filter(({ contractId }) => !gone.has(contractId))
    const come = transaction.events.flatMap(({ CreatedEvent: created }) =>
      created?.createArgument.owner === person ? [coinOf(created)] : [],
    )
    coins.set(person, [...kept, ...come])
  }
}

async function findWorld(client: LedgerClient): Promise<World> {
  // A node without a ledger says why it has none.
  await client.request('GET', '/v2/state/ledger-end')
  type Parties = { partyDetails: { party: string }[] }
  const { partyDetails } = await client.request<Parties>('GET', '/v2/parties')
  const parties = partyDetails.map(({ party }) => party)
  const dso = parties.find((party) => party.startsWith('DSO::'))
  const people = parties.filter((party) => party !== dso)
  const [rules] = dso === undefined ? [] : await active(client, dso, RULES)
  const [round] = dso === undefined ? [] : await active(client, dso, ROUND)
  if (dso === undefined || rules === undefined || round === undefined || people.length < 2) {
    throw new CommandError(
      'This node has no seeded network to keep lively. Start one on an empty directory, without --empty.',
    )
  }
  const coins = new Map<string, Coin[]>()
  for (const person of people) coins.set(person, await coinsOf(client, person))
  return {
    client,
    dso,
    people,
    rules: rules.contractId,
    round: round.contractId,
    coins,
    refusals: 0,
  }
}

async function coinsOf(client: LedgerClient, owner: string): Promise<Coin[]> {
  const events = await active(client, owner, COIN)
  return events.filter(({ createArgument }) => createArgument.owner === owner).map(coinOf)
}

async function active(
  client: LedgerClient,
  party: string,
  templateId: string,
): Promise<CreatedEvent[]> {
  type Answer = { contractEntry: { JsActiveContract: { createdEvent: CreatedEvent } } }[]
  const identifierFilter = { TemplateFilter: { value: { templateId } } }
  const eventFormat = { filtersByParty: { [party]: { cumulative: [{ identifierFilter }] } } }
  const path = '/v2/state/active-contracts'
  const answer = await client.request<Answer>('POST', path, { eventFormat })
  return answer.map(({ contractEntry }) => contractEntry.JsActiveContract.createdEvent)
}

async function ownToken(context: CliContext, options: DemoOptions): Promise<string | undefined> {
  const { auth, dataDir } = await readConfiguration(options, context, { isQuiet: true })
  if (auth.participant !== undefined || auth.disabled) return undefined
  const { DEV_AUDIENCE, mintDevToken, readDevKey } = await import('../users/dev-key.ts')
  const key = await readDevKey(dataDir)
  const token = { userId: 'participant_admin', ttlSeconds: TOKEN_SECONDS, audience: DEV_AUDIENCE }
  return key && mintDevToken(key, token)
}

function coinOf({ contractId, createArgument }: CreatedEvent): Coin {
  return { contractId, amount: BigInt(createArgument.amount.initialAmount.replace('.', '')) }
}

function print(amount: bigint): string {
  const digits = String(amount).padStart(11, '0')
  return `${digits.slice(0, -10)}.${digits.slice(-10)}`
}

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T
}

function parseRate(text: string): number {
  const rate = Number(text)
  if (rate > 0 && rate <= RATE_MAX) return rate
  throw new InvalidArgumentError(`A rate is a number above 0, up to ${RATE_MAX}, such as 50.`)
}

function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('A count is a whole number above 0, such as 1000.')
}
