import { randomUUID } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { parseDecimal } from '../values/decimal.ts'
import { addSourceOptions } from './check-config.ts'
import { addDataOption } from './commands.ts'
import { type ConfigurationArguments, readConfiguration } from './configuration.ts'
import {
  type ConnectionOptions,
  connect,
  EXIT_CODES_HELP,
  type LedgerClient,
  NodeRefusal,
  printAnswer,
  printLine,
} from './ledger-client.ts'
import { type CliContext, CommandError, EXIT } from './output.ts'
import { formatTable } from './table.ts'

type WalletOptions = ConfigurationArguments &
  ConnectionOptions & { user?: string; trackingId?: string; description?: string }
type OfferOptions = WalletOptions & { expiresIn: number }
type LogOptions = WalletOptions & { limit: number }

type Contract = {
  contract_id: string
  payload: {
    sender: string
    receiver: string
    amount: { amount: string }
    description: string
    expiresAt: string
    trackingId: string
  }
}
type Balance = Record<
  | 'effective_unlocked_qty'
  | 'effective_locked_qty'
  | 'unlocked_usd'
  | 'locked_usd'
  | 'amulet_price',
  string
>
type LogItem = {
  event_id: string
  date: string
  amount: string
  description?: string
  transaction_subtype: { choice: string }
  sender?: { party: string }
  receivers?: { party: string }[]
}

const DEFAULT_URL = 'http://localhost:5003'
const WALLET = '/api/validator/v0/wallet'
const TOKEN_SECONDS = 600
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const
const LIMIT_MAX = 1000
/** Fewer digits of a contract id would be a guess. */
const ID_LENGTH_MIN = 8
const ID_LENGTH_SHOWN = 16

const EXAMPLES = `
Examples:
  annals wallet register --user alice
  annals wallet balance --user alice
  annals wallet tap 100 --user alice
  annals wallet offer bob::1220… 12.5 --description "for lunch" --expires-in 2h
  annals wallet offers
  annals wallet accept 00a1b2c3d4
  annals wallet preapprove
  annals wallet send carol::1220… 3 --tracking-id invoice-17
  annals wallet log --limit 50 --json

Amounts are coins, but for tap, which takes USD. With --user, and beside the data directory of a node
that has no identity provider configured, the command makes its own token. Repeat a payment that was
cut off with its --tracking-id: it is made once.
${EXIT_CODES_HELP}`

/** annals wallet …: the wallet of a user on a running node. */
export const walletCommand = (context: CliContext): Command => {
  const wallet = new Command('wallet')
    .description('Use a wallet of a running node.')
    .addHelpText('after', EXAMPLES)
  const sub = (name: string, description: string): Command =>
    addSourceOptions(addDataOption(wallet.command(name)))
      .description(description)
      .option('--user <id>', 'user whose wallet it is; makes a development token')
      .option(
        '--url <url>',
        `validator API of the node (or ANNALS_VALIDATOR_URL; default ${DEFAULT_URL})`,
      )
      .option('--token <token>', 'bearer token (better: ANNALS_TOKEN, which others cannot see)')
      .option('--json', 'print JSON for machines')
  const payment = (command: Command): Command =>
    command
      .option('--description <text>', 'what it is for')
      .option('--tracking-id <id>', 'makes a repeated command the same payment')

  sub('register', 'give the user a party and a wallet').action((options: WalletOptions) =>
    registerUser(context, options),
  )
  sub('balance', 'what the wallet holds').action((options: WalletOptions) =>
    showBalance(context, options),
  )
  sub('tap <usd>', 'take coins out of nothing, on a development network').action(
    (usd: string, options: WalletOptions) => tapCoins(context, usd, options),
  )
  payment(sub('offer <party> <amount>', 'offer coins to a party'))
    .option(
      '--expires-in <duration>',
      'how long it can be accepted: 15m, 2h, 7d',
      secondsOf,
      86_400,
    )
    .action((party: string, amount: string, options: OfferOptions) =>
      makeOffer(context, { party, amount }, options),
    )
  sub('offers', 'list the open offers').action((options: WalletOptions) =>
    listOffers(context, options),
  )
  for (const [name, description] of [
    ['accept', 'accept an offer'],
    ['reject', 'reject an offer'],
    ['withdraw', 'take an own offer back'],
  ] as const) {
    sub(`${name} <id>`, `${description}, by its contract id or the beginning of it`).action(
      (id: string, options: WalletOptions) => endOffer(context, { id, name }, options),
    )
  }
  sub('preapprove', 'agree beforehand to whatever is sent').action((options: WalletOptions) =>
    preapprove(context, options),
  )
  payment(sub('send <party> <amount>', 'pay a party that has agreed beforehand')).action(
    (party: string, amount: string, options: WalletOptions) =>
      sendCoins(context, { party, amount }, options),
  )
  sub('log', 'list what happened, newest first')
    .option('--limit <number>', 'how many entries', limitOf, 20)
    .action((options: LogOptions) => showLog(context, options))
  return wallet
}

const open = async (context: CliContext, options: WalletOptions): Promise<LedgerClient> => {
  const url = options.url ?? context.env.ANNALS_VALIDATOR_URL ?? DEFAULT_URL
  const token = options.user === undefined ? options.token : await ownToken(context, options)
  return connect(context, { url, ...(token === undefined ? {} : { token }) })
}

const ownToken = async (context: CliContext, options: WalletOptions): Promise<string> => {
  if (options.token !== undefined) {
    throw new CommandError('Give either --user or --token: a token names its user.', EXIT.usage)
  }
  const { auth, dataDir } = await readConfiguration(options, context, { isQuiet: true })
  if (auth.validator !== undefined) {
    throw new CommandError(
      `This node takes its tokens from the provider of ${auth.validator.jwksUrl}. Get one there and give it in ANNALS_TOKEN.`,
    )
  }
  const { DEV_AUDIENCE, mintDevToken, readDevKey } = await import('../users/dev-key.ts')
  const key = await readDevKey(dataDir)
  if (key === undefined) {
    throw new CommandError(
      `There is no signing key in ${dataDir}. Start the node once, then ask again; --data names its directory.`,
    )
  }
  const userId = options.user ?? ''
  if (userId === '') throw new CommandError('Give the id of a user with --user.', EXIT.usage)
  return mintDevToken(key, { userId, ttlSeconds: TOKEN_SECONDS, audience: DEV_AUDIENCE })
}

const registerUser = async (context: CliContext, options: WalletOptions): Promise<void> => {
  const client = await open(context, options)
  const answer = await client.request<{ party_id: string }>('POST', '/api/validator/v0/register')
  printAnswer(context, options, answer, () => answer.party_id)
}

const showBalance = async (context: CliContext, options: WalletOptions): Promise<void> => {
  const client = await open(context, options)
  const held = await client.request<Balance>('GET', `${WALLET}/balance`)
  printAnswer(context, options, held, () =>
    formatTable(
      ['', 'COIN', 'USD'],
      [
        ['free', held.effective_unlocked_qty, held.unlocked_usd],
        ['locked', held.effective_locked_qty, held.locked_usd],
      ],
    ),
  )
}

const tapCoins = async (context: CliContext, usd: string, options: WalletOptions) => {
  const client = await open(context, options)
  const answer = await client.request<{ contract_id: string }>('POST', `${WALLET}/tap`, {
    amount: usd,
    command_id: randomUUID(),
  })
  printAnswer(context, options, answer, () => `Coins worth ${usd} USD are in the wallet.`)
}

const makeOffer = async (
  context: CliContext,
  { party, amount }: { party: string; amount: string },
  options: OfferOptions,
): Promise<void> => {
  const client = await open(context, options)
  const trackingId = options.trackingId ?? randomUUID()
  const description = options.description ?? ''
  const answer = await client
    .request<{ offer_contract_id: string }>('POST', `${WALLET}/transfer-offers`, {
      receiver_party_id: party,
      amount,
      description,
      expires_at: (Math.floor(Date.now() / 1000) + options.expiresIn) * 1_000_000,
      tracking_id: trackingId,
    })
    .catch(async (error: unknown) => {
      const isTaken = error instanceof NodeRefusal && error.status === 409
      const wanted = { trackingId, receiver: party, description, amount: parseDecimal(amount) }
      const made = isTaken ? await findOwnOffer(client, wanted) : undefined
      if (made === undefined) throw error
      return { offer_contract_id: made }
    })
  printAnswer(
    context,
    options,
    { ...answer, tracking_id: trackingId },
    () => answer.offer_contract_id,
  )
}

/** A command that is repeated later asks for a later end, which makes no other offer of it. */
const findOwnOffer = async (
  client: LedgerClient,
  wanted: { trackingId: string; receiver: string; description: string; amount: bigint | undefined },
): Promise<string | undefined> =>
  (await offersOf(client)).find(
    ({ payload }) =>
      payload.trackingId === wanted.trackingId &&
      payload.receiver === wanted.receiver &&
      payload.description === wanted.description &&
      parseDecimal(payload.amount.amount) === wanted.amount,
  )?.contract_id

const offersOf = async (client: LedgerClient): Promise<Contract[]> =>
  (await client.request<{ offers: Contract[] }>('GET', `${WALLET}/transfer-offers`)).offers

const listOffers = async (context: CliContext, options: WalletOptions): Promise<void> => {
  const offers = await offersOf(await open(context, options))
  if (options.json) {
    for (const offer of offers) printLine(context, JSON.stringify(offer))
    return
  }
  printLine(
    context,
    formatTable(
      ['ID', 'FROM', 'TO', 'AMOUNT', 'EXPIRES', 'DESCRIPTION'],
      offers.map(({ contract_id, payload }) => [
        contract_id.slice(0, ID_LENGTH_SHOWN),
        nameOf(payload.sender),
        nameOf(payload.receiver),
        payload.amount.amount,
        payload.expiresAt,
        payload.description,
      ]),
    ),
  )
}

const endOffer = async (
  context: CliContext,
  { id, name }: { id: string; name: string },
  options: WalletOptions,
): Promise<void> => {
  const client = await open(context, options)
  const contractId = await findOffer(client, id)
  const answer = await client.request<object>(
    'POST',
    `${WALLET}/transfer-offers/${contractId}/${name}`,
  )
  const done = { accept: 'accepted', reject: 'rejected', withdraw: 'withdrawn' }[name] ?? name
  printAnswer(context, options, answer, () => `The offer is ${done}.`)
}

const findOffer = async (client: LedgerClient, id: string): Promise<string> => {
  if (!/^[0-9a-f]+$/.test(id) || id.length < ID_LENGTH_MIN) {
    throw new CommandError(
      `${id} is not the id of a contract, nor its first ${ID_LENGTH_MIN} digits; \`annals wallet offers\` shows them.`,
      EXIT.usage,
    )
  }
  const found = (await offersOf(client)).filter(({ contract_id }) => contract_id.startsWith(id))
  if (found.length > 1) throw new CommandError(`Several offers begin with ${id}; give more digits.`)
  return found[0]?.contract_id ?? id
}

const preapprove = async (context: CliContext, options: WalletOptions): Promise<void> => {
  const client = await open(context, options)
  const answer = await client.request<object>('POST', `${WALLET}/transfer-preapproval`)
  printAnswer(context, options, answer, () => 'Whoever wants to may now send coins to the wallet.')
}

const sendCoins = async (
  context: CliContext,
  { party, amount }: { party: string; amount: string },
  options: WalletOptions,
): Promise<void> => {
  const client = await open(context, options)
  const trackingId = options.trackingId ?? randomUUID()
  const answer = await client.request<object>('POST', `${WALLET}/transfer-preapproval/send`, {
    receiver_party_id: party,
    amount,
    deduplication_id: trackingId,
    ...(options.description === undefined ? {} : { description: options.description }),
  })
  printAnswer(
    context,
    options,
    { ...answer, deduplication_id: trackingId },
    () => `${amount} coins are with ${nameOf(party)}.`,
  )
}

const showLog = async (context: CliContext, options: LogOptions): Promise<void> => {
  const client = await open(context, options)
  const { items } = await client.request<{ items: LogItem[] }>('POST', `${WALLET}/transactions`, {
    page_size: options.limit,
  })
  if (options.json) {
    for (const item of items) printLine(context, JSON.stringify(item))
    return
  }
  printLine(
    context,
    formatTable(
      ['TIME', 'AMOUNT', 'WHAT', 'FROM', 'TO', 'DESCRIPTION'],
      items.map(({ date, amount, transaction_subtype, sender, receivers = [], description }) => [
        date,
        amount,
        transaction_subtype.choice,
        nameOf(sender?.party ?? ''),
        receivers.map(({ party }) => nameOf(party)).join(', '),
        description ?? '',
      ]),
    ),
  )
}

/** The part of a party id that people read. */
const nameOf = (party: string): string => party.replace(/::.*$/, '')

function secondsOf(duration: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(duration)
  const seconds = Number(match?.[1] ?? 0) * SECONDS[(match?.[2] ?? 's') as keyof typeof SECONDS]
  if (seconds > 0) return seconds
  throw new InvalidArgumentError('A duration is a number with s, m, h or d, such as 2h.')
}

function limitOf(text: string): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= LIMIT_MAX) return limit
  throw new InvalidArgumentError(`A limit is a whole number from 1 to ${LIMIT_MAX}.`)
}
