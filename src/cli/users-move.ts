import {
  type ConnectionOptions,
  connect,
  type LedgerClient,
  NodeRefusal,
  printAnswer,
  printLine,
  printNote,
  providerId,
  providerName,
} from './ledger-client.ts'
import { type MoveResult, moveAll, moveOne, usersOf } from './move-users.ts'
import type { CliContext } from './output.ts'
import { CommandError, EXIT } from './output.ts'
import { printable } from './table.ts'

/** `annals users move`: what it asks the node first, and how it tells what happened. */
export type MoveOptions = ConnectionOptions & {
  to: string
  from?: string
  all?: boolean
  includeSelf?: boolean
  dryRun?: boolean
}

type Provider = { identityProviderId: string; isDeactivated: boolean }

/** Progress of a bulk move is told each time this many users are done. */
const PROGRESS_EACH = 100

export const moveSingleUser = async (
  context: CliContext,
  user: string | undefined,
  options: MoveOptions,
): Promise<void> => {
  if (user === undefined) {
    throw new CommandError('Name a user, or --all with --from.', EXIT.usage)
  }
  const client = connect(context, options)
  const target = providerId(options.to)
  const source =
    options.from === undefined ? await findProvider(client, user) : providerId(options.from)
  await requireTarget(context, client, target)
  if (options.dryRun) {
    const query = new URLSearchParams({ 'identity-provider-id': source })
    await client.request('GET', `/v2/users/${encodeURIComponent(user)}?${query}`)
  } else await moveOne(client, { user, source, target })
  const outcome = source === target ? 'already there' : options.dryRun ? 'would move' : 'moved'
  const [from, to] = [providerName(source), providerName(target)].map(printable)
  printAnswer(context, options, { user, from: source, to: target, outcome }, () => {
    if (source === target) return `${printable(user)} is already in ${to}. Nothing was changed.`
    return options.dryRun
      ? `Would move ${printable(user)} from ${from} to ${to}: tokens of ${from} would stop, tokens of ${to} would work. Nothing was changed.`
      : `Moved ${printable(user)} from ${from} to ${to}.`
  })
}

export const moveProviderUsers = async (
  context: CliContext,
  user: string | undefined,
  options: MoveOptions,
): Promise<void> => {
  if (user !== undefined || options.from === undefined) {
    throw new CommandError('With --all give --from and --to, and no user.', EXIT.usage)
  }
  const client = connect(context, options)
  const source = providerId(options.from)
  const target = providerId(options.to)
  if (source === target) throw new CommandError('--from and --to are the same.', EXIT.usage)
  await requireTarget(context, client, target)
  const own = await ownUser(client)
  const users = await usersOf(client, source)
  const counts = { moved: 0, 'would move': 0, 'left out': 0, failed: 0 }
  let done = 0
  const onResult = (result: MoveResult): void => {
    counts[result.outcome] += 1
    done += 1
    const reason = result.outcome === 'failed' ? `: ${printable(result.reason)}` : ''
    printLine(
      context,
      options.json
        ? JSON.stringify(result)
        : `${result.outcome} ${printable(result.user)}${reason}`,
    )
    if (done % PROGRESS_EACH === 0) printNote(context, `${done} of ${users.length} users`)
  }
  const self = own === undefined ? undefined : { id: own, include: options.includeSelf ?? false }
  try {
    const dryRun = options.dryRun ?? false
    await moveAll({ client, source, target, dryRun, self, onResult }, users)
  } catch (error) {
    printNote(
      context,
      `Stopped after ${done} of ${users.length} users. Run the same command again to move the rest.`,
    )
    throw error
  }
  printNote(
    context,
    `${users.length} users: ${Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([outcome, count]) => `${count} ${outcome}`)
      .join(', ')}.`,
  )
  if (counts['left out'] > 0) {
    printNote(
      context,
      'The own user was left out, as its token would end; --include-self moves it last.',
    )
  }
  if (counts.failed > 0) {
    throw new CommandError(
      `${counts.failed} of ${users.length} users were not moved; the reasons stand above.`,
      EXIT.failed,
    )
  }
}

/** A node tells only whether a user is in a named provider, so each is asked. */
const findProvider = async (client: LedgerClient, user: string): Promise<string> => {
  const { identityProviderConfigs } = await client.request<{ identityProviderConfigs: Provider[] }>(
    'GET',
    '/v2/idps',
  )
  for (const id of ['', ...identityProviderConfigs.map((each) => each.identityProviderId)]) {
    const query = new URLSearchParams({ 'identity-provider-id': id })
    try {
      await client.request('GET', `/v2/users/${encodeURIComponent(user)}?${query}`)
      return id
    } catch (error) {
      if (!(error instanceof NodeRefusal) || error.status !== 403) throw error
    }
  }
  throw new CommandError(
    `The identity provider of ${printable(user)} was not found. Name it with --from.`,
    EXIT.failed,
  )
}

const requireTarget = async (
  context: CliContext,
  client: LedgerClient,
  target: string,
): Promise<void> => {
  if (target === '') return
  const { identityProviderConfig } = await client.request<{ identityProviderConfig: Provider }>(
    'GET',
    `/v2/idps/${encodeURIComponent(target)}`,
  )
  if (identityProviderConfig.isDeactivated) {
    printNote(
      context,
      `${printable(target)} is deactivated: its tokens are refused until it is activated.`,
    )
  }
}

/** Undefined on a node without authentication, which has no user behind a request. */
const ownUser = async (client: LedgerClient): Promise<string | undefined> => {
  try {
    return (await client.request<{ user: { id: string } }>('GET', '/v2/authenticated-user')).user.id
  } catch (error) {
    if (error instanceof NodeRefusal && error.ledgerCode === 'INVALID_TOKEN') return undefined
    throw error
  }
}
