import { type LedgerClient, NodeRefusal } from './ledger-client.ts'

/**
 * Moving many users. The users still in the source are the work that is left, so an interrupted
 * run is resumed by running it again: nothing is remembered outside the node.
 */
export type MoveResult =
  | { user: string; outcome: 'moved' | 'would move' | 'left out' }
  | { user: string; outcome: 'failed'; reason: string }

export type MoveAllOptions = {
  client: LedgerClient
  source: string
  target: string
  dryRun: boolean
  /** The caller's own user: moved last, or not at all, because its token ends with the move. */
  self: { id: string; include: boolean } | undefined
  onResult(result: MoveResult): void
}

/** The largest page that a node gives. */
const PAGE_SIZE = 1000
/** Enough to hide the way to the node and back; few enough to leave it room for its other work. */
const AT_ONCE = 8
const TRIES_MAX = 3
const RETRY_AFTER_MS = 1000

type UsersPage = { users: { id: string }[]; nextPageToken: string }

export const usersOf = async (client: LedgerClient, providerId: string): Promise<string[]> => {
  const ids: string[] = []
  let pageToken = ''
  do {
    const query = new URLSearchParams({
      pageSize: String(PAGE_SIZE),
      pageToken,
      'identity-provider-id': providerId,
    })
    const page = await client.request<UsersPage>('GET', `/v2/users?${query}`)
    ids.push(...page.users.map(({ id }) => id))
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  return ids
}

export const moveAll = async (options: MoveAllOptions, users: string[]): Promise<void> => {
  const { self, onResult } = options
  const others = users.filter((user) => user !== self?.id)
  for (let start = 0; start < others.length; start += AT_ONCE) {
    const results = await Promise.allSettled(
      others.slice(start, start + AT_ONCE).map(async (user) => onResult(await move(options, user))),
    )
    const lost = results.find((result) => result.status === 'rejected')
    if (lost !== undefined) throw lost.reason
  }
  if (self === undefined || !users.includes(self.id)) return
  onResult(self.include ? await move(options, self.id) : { user: self.id, outcome: 'left out' })
}

export const moveOne = async (
  client: LedgerClient,
  move: { user: string; source: string; target: string },
): Promise<void> => {
  await client.request('PATCH', `/v2/users/${encodeURIComponent(move.user)}/identity-provider-id`, {
    userId: move.user,
    sourceIdentityProviderId: move.source,
    targetIdentityProviderId: move.target,
  })
}

/** One user's result; a node that cannot be reached or a token that ended stops the whole run. */
const move = async (options: MoveAllOptions, user: string): Promise<MoveResult> => {
  const { client, source, target } = options
  if (options.dryRun) return { user, outcome: 'would move' }
  for (let tries = 1; ; tries++) {
    try {
      await moveOne(client, { user, source, target })
      return { user, outcome: 'moved' }
    } catch (error) {
      if (!(error instanceof NodeRefusal) || error.status === 401) throw error
      const passing = error.status === 409 || error.status === 503
      if (!passing || tries === TRIES_MAX) return { user, outcome: 'failed', reason: error.message }
      await new Promise((resolve) => setTimeout(resolve, RETRY_AFTER_MS))
    }
  }
}
