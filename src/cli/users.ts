import { Command } from 'commander'
import {
  type ConnectionOptions,
  connect,
  connectionOptions,
  DEFAULT_PROVIDER_NAME,
  EXIT_CODES_HELP,
  printAnswer,
  providerId,
  providerName,
} from './ledger-client.ts'
import type { CliContext } from './output.ts'
import { CommandError, EXIT } from './output.ts'
import { formatTable, printable } from './table.ts'
import { type MoveOptions, moveProviderUsers, moveSingleUser } from './users-move.ts'

type User = {
  id: string
  primaryParty: string
  isDeactivated: boolean
  identityProviderId: string
}
type RightJson = { kind: Record<string, { value: { party?: string } }> }
type InProvider = ConnectionOptions & { idp?: string }

const EXAMPLES = `
Examples:
  annals users list --idp old-idp
  annals users create dora --primary-party dora::1220ab… --right CanActAs:dora::1220ab…
  annals users grant dora --right ParticipantAdmin
  annals users move dora --to new-idp --dry-run
  annals users move --all --from old-idp --to new-idp
  annals users delete dora --idp new-idp

An identity provider named "${DEFAULT_PROVIDER_NAME}" is the default one.
A bulk move that was interrupted is resumed by running it again.
${EXIT_CODES_HELP}`

/** annals users …: administration of users over the ledger API of a running node. */
export const usersCommand = (context: CliContext): Command => {
  const users = new Command('users')
    .description('Administer the users of a node.')
    .addHelpText('after', EXAMPLES)

  const sub = (name: string, description: string): Command =>
    connectionOptions(users.command(name).description(description))
  const inProvider = (command: Command): Command =>
    command.option('--idp <id>', 'identity provider of the user', DEFAULT_PROVIDER_NAME)
  const withRights = (command: Command): Command =>
    command.option(
      '--right <right>',
      'ParticipantAdmin, IdentityProviderAdmin, CanActAs:<party>, CanReadAs:<party> …; may be repeated',
      (value: string, before: string[]) => [...before, value],
      [],
    )

  inProvider(sub('list', 'list the users of an identity provider')).action((options: InProvider) =>
    listUsers(context, options),
  )
  inProvider(sub('show <user>', 'show a user and its rights')).action(
    (user: string, options: InProvider) => showUser(context, user, options),
  )
  withRights(inProvider(sub('create <user>', 'create a user')))
    .option('--primary-party <party>', 'party that the user acts as by default')
    .action((user: string, options: CreateOptions) => createUser(context, user, options))
  withRights(inProvider(sub('grant <user>', 'grant rights to a user'))).action(
    (user: string, options: RightsOptions) => changeRights(context, user, options, 'grant'),
  )
  withRights(inProvider(sub('revoke <user>', 'revoke rights of a user'))).action(
    (user: string, options: RightsOptions) => changeRights(context, user, options, 'revoke'),
  )
  sub('move [user]', 'move a user, or all of a provider, to another identity provider')
    .requiredOption('--to <id>', 'identity provider to move to')
    .option('--from <id>', 'identity provider to move from; for one user it is looked for')
    .option('--all', 'move every user of --from')
    .option('--include-self', 'with --all: move the own user too, last; its token ends with that')
    .option('--dry-run', 'tell what would happen and change nothing')
    .action((user: string | undefined, options: MoveOptions) =>
      options.all
        ? moveProviderUsers(context, user, options)
        : moveSingleUser(context, user, options),
    )
  inProvider(sub('delete <user>', 'delete a user')).action((user: string, options: InProvider) =>
    deleteUser(context, user, options),
  )
  return users
}

type RightsOptions = InProvider & { right: string[] }
type CreateOptions = RightsOptions & { primaryParty?: string }

const listUsers = async (context: CliContext, options: InProvider): Promise<void> => {
  const client = connect(context, options)
  const users: User[] = []
  let pageToken = ''
  do {
    const query = new URLSearchParams({
      pageToken,
      'identity-provider-id': providerId(options.idp),
    })
    const page = await client.request<{ users: User[]; nextPageToken: string }>(
      'GET',
      `/v2/users?${query}`,
    )
    users.push(...page.users)
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  printAnswer(context, options, users, () =>
    formatTable(
      ['USER', 'IDENTITY PROVIDER', 'PRIMARY PARTY', 'ACTIVE'],
      users.map((user) => [
        user.id,
        providerName(user.identityProviderId),
        user.primaryParty,
        user.isDeactivated ? 'no' : 'yes',
      ]),
    ),
  )
}

const showUser = async (context: CliContext, id: string, options: InProvider): Promise<void> => {
  const client = connect(context, options)
  const query = new URLSearchParams({ 'identity-provider-id': providerId(options.idp) })
  const path = `/v2/users/${encodeURIComponent(id)}`
  const { user } = await client.request<{ user: User }>('GET', `${path}?${query}`)
  const { rights } = await client.request<{ rights: RightJson[] }>('GET', `${path}/rights?${query}`)
  printAnswer(context, options, { user, rights }, () =>
    formatTable(
      ['USER', 'IDENTITY PROVIDER', 'PRIMARY PARTY', 'ACTIVE', 'RIGHTS'],
      [
        [
          user.id,
          providerName(user.identityProviderId),
          user.primaryParty,
          user.isDeactivated ? 'no' : 'yes',
          rights.map(rightText).join(' '),
        ],
      ],
    ),
  )
}

const createUser = async (
  context: CliContext,
  id: string,
  options: CreateOptions,
): Promise<void> => {
  const client = connect(context, options)
  const { user } = await client.request<{ user: User }>('POST', '/v2/users', {
    user: {
      id,
      primaryParty: options.primaryParty ?? '',
      identityProviderId: providerId(options.idp),
    },
    rights: options.right.map(rightOf),
  })
  const where = providerName(user.identityProviderId)
  printAnswer(context, options, user, () => `Created ${printable(user.id)} in ${printable(where)}.`)
}

const changeRights = async (
  context: CliContext,
  userId: string,
  options: RightsOptions,
  change: 'grant' | 'revoke',
): Promise<void> => {
  if (options.right.length === 0) {
    throw new CommandError('Name at least one right with --right.', EXIT.usage)
  }
  const client = connect(context, options)
  const answer = await client.request<Record<string, RightJson[]>>(
    change === 'grant' ? 'POST' : 'PATCH',
    `/v2/users/${encodeURIComponent(userId)}/rights`,
    {
      userId,
      identityProviderId: providerId(options.idp),
      rights: options.right.map(rightOf),
    },
  )
  const changed = answer.newlyGrantedRights ?? answer.newlyRevokedRights ?? []
  const verb = change === 'grant' ? 'Granted' : 'Revoked'
  printAnswer(context, options, answer, () =>
    changed.length === 0
      ? 'Nothing changed.'
      : `${verb} ${changed.map(rightText).map(printable).join(' ')}.`,
  )
}

const deleteUser = async (context: CliContext, id: string, options: InProvider): Promise<void> => {
  const client = connect(context, options)
  const query = new URLSearchParams({ 'identity-provider-id': providerId(options.idp) })
  await client.request('DELETE', `/v2/users/${encodeURIComponent(id)}?${query}`)
  printAnswer(context, options, { deleted: id }, () => `Deleted ${printable(id)}.`)
}

/** `CanActAs:alice::1220ab` → the protocol's form; the node knows which kinds there are. */
const rightOf = (text: string): RightJson => {
  const at = text.indexOf(':')
  const value = at < 0 ? {} : { party: text.slice(at + 1) }
  return { kind: { [at < 0 ? text : text.slice(0, at)]: { value } } }
}

const rightText = ({ kind }: RightJson): string =>
  Object.entries(kind)
    .map(([name, { value }]) => (value.party === undefined ? name : `${name}:${value.party}`))
    .join(' ')
