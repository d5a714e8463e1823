import { Command, InvalidArgumentError } from 'commander'
import {
  type ConnectionOptions,
  connect,
  EXIT_CODES_HELP,
  type LedgerClient,
  printAnswer,
  printNote,
} from './ledger-client.ts'
import { type CliContext, CommandError } from './output.ts'
import { formatTable } from './table.ts'

type Invitation = {
  contract: { contract_id: string; created_at: string }
  secret_sha256: string
  expires_at: string
  party_hint?: string
}
type Issued = Invitation & { secret: string }
type Licence = {
  contract_id: string
  created_at: string
  payload: {
    validator: string
    sponsor: string
    metadata: { version: string; contactPoint: string } | null
    lastActiveAt: string | null
  }
}
type LicencesPage = { validator_licenses: Licence[]; next_page_token?: string }
type IssueOptions = ConnectionOptions & { hint?: string; expiresIn: number }

const DEFAULT_URL = 'http://localhost:5003'
const ONBOARDING = '/api/sv/v0/admin/validator/onboarding'
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const
/** Fewer digits of a contract id would be a guess. */
const ID_LENGTH_MIN = 8

const EXAMPLES = `
Examples:
  annals sponsor issue
  annals sponsor issue --hint acme-validator-1 --expires-in 7d
  ANNALS_TOKEN=$(annals token) annals sponsor list
  annals sponsor revoke 00a1b2c3d4
  annals sponsor validators --json

For a node with a network of its own, on its validator port. A secret is shown once: the node keeps
its hash alone. Give it to the operator of the validator that shall join, as ONBOARDING_SECRET.
${EXIT_CODES_HELP}`

/** annals sponsor …: who may join the network of a running node. */
export const sponsorCommand = (context: CliContext): Command => {
  const sponsor = new Command('sponsor')
    .description('Invite validators into the network of a node, and see who has joined.')
    .addHelpText('after', EXAMPLES)
  const sub = (name: string, description: string): Command =>
    sponsor
      .command(name)
      .description(description)
      .option('--url <url>', 'validator port of the node', DEFAULT_URL)
      .option('--token <token>', 'bearer token (better: ANNALS_TOKEN, which others cannot see)')
      .option('--json', 'print JSON for machines')

  sub('issue', 'issue a one-time secret')
    .option('--hint <hint>', 'party hint that the secret is for; any when left out')
    .option('--expires-in <duration>', 'how long it lives: 90s, 15m, 48h, 7d', secondsOf, 172_800)
    .action((options: IssueOptions) => issueSecret(context, options))
  sub('list', 'list the secrets that were issued and not used').action(
    (options: ConnectionOptions) => listSecrets(context, options),
  )
  sub('revoke <id>', 'revoke an unused secret, by its contract id or the beginning of it').action(
    (id: string, options: ConnectionOptions) => revokeSecret(context, id, options),
  )
  sub('validators', 'list the validators that have joined, with their contact points').action(
    (options: ConnectionOptions) => listValidators(context, options),
  )
  return sponsor
}

const issueSecret = async (context: CliContext, options: IssueOptions): Promise<void> => {
  const issued = await connect(context, options).request<Issued>('POST', `${ONBOARDING}/prepare`, {
    expires_in: options.expiresIn,
    ...(options.hint === undefined ? {} : { party_hint: options.hint }),
  })
  printAnswer(context, options, issued, () => issued.secret)
  if (options.json) return
  const whom = issued.party_hint === undefined ? 'one validator' : `validator ${issued.party_hint}`
  printNote(context, `For ${whom}, until ${issued.expires_at}. It is not shown again.`)
}

const listSecrets = async (context: CliContext, options: ConnectionOptions): Promise<void> => {
  const invitations = await ongoing(connect(context, options))
  printAnswer(context, options, invitations, () =>
    formatTable(
      ['ID', 'FOR', 'ISSUED', 'EXPIRES'],
      invitations.map(({ contract, party_hint: hint, expires_at: expires }) => [
        contract.contract_id.slice(0, 2 * ID_LENGTH_MIN),
        hint ?? 'any',
        contract.created_at,
        expires,
      ]),
    ),
  )
}

const revokeSecret = async (
  context: CliContext,
  id: string,
  options: ConnectionOptions,
): Promise<void> => {
  const client = connect(context, options)
  const found = (await ongoing(client)).filter(
    ({ contract }) => id.length >= ID_LENGTH_MIN && contract.contract_id.startsWith(id),
  )
  const [only] = found
  if (only === undefined || found.length > 1) {
    throw new CommandError(
      `${found.length === 0 ? 'No unused secret begins' : 'Several unused secrets begin'} with ${id.slice(0, 40)}. \`annals sponsor list\` shows them; give at least ${ID_LENGTH_MIN} digits.`,
    )
  }
  const { contract_id } = only.contract
  const revoked = await client.request<Invitation>('POST', `${ONBOARDING}/revoke`, { contract_id })
  printAnswer(context, options, revoked, () => 'The secret is revoked.')
}

const listValidators = async (context: CliContext, options: ConnectionOptions): Promise<void> => {
  const client = connect(context, options)
  const licences: Licence[] = []
  let after: string | undefined = ''
  while (after !== undefined) {
    const path = `/api/sv/v0/admin/validator/licenses?after=${after}`
    const page: LicencesPage = await client.request('GET', path)
    licences.push(...page.validator_licenses)
    after = page.next_page_token
  }
  printAnswer(context, options, licences, () =>
    formatTable(
      ['VALIDATOR', 'CONTACT POINT', 'VERSION', 'LAST ACTIVE'],
      licences.map(({ payload: { validator, metadata, lastActiveAt } }) => [
        validator,
        metadata?.contactPoint || '-',
        metadata?.version || '-',
        lastActiveAt ?? '-',
      ]),
    ),
  )
}

async function ongoing(client: LedgerClient): Promise<Invitation[]> {
  type Answer = { ongoing_validator_onboardings: Invitation[] }
  const { ongoing_validator_onboardings: invitations } = await client.request<Answer>(
    'GET',
    `${ONBOARDING}/ongoing`,
  )
  return invitations
}

function secondsOf(duration: string): number {
  const match = /^(\d{1,8})([smhd])$/.exec(duration)
  const seconds = Number(match?.[1] ?? 0) * SECONDS[(match?.[2] ?? 's') as keyof typeof SECONDS]
  if (seconds >= 1) return seconds
  throw new InvalidArgumentError('A duration is a whole number and a unit, such as 15m or 48h.')
}
