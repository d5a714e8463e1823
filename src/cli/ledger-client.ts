import type { Command } from 'commander'
import { type CliContext, CommandError, EXIT } from './output.ts'

/** Beside the exit codes of every command: what may go wrong between here and a node. */
export const CONNECTION_EXIT = { unreachable: 3, denied: 4 } as const

export const EXIT_CODES_HELP = `
Exit codes:
  0  done
  1  the node refused, or some of the work failed
  2  the command was called wrongly
  3  the node cannot be reached
  4  the token is missing, invalid or lacks the right`

/** The node has answered, and the answer is no. */
export class NodeRefusal extends CommandError {
  override name = 'NodeRefusal'
  readonly status: number
  readonly ledgerCode: string | undefined

  constructor(message: string, refusal: { status: number; code: string | undefined }) {
    const denied = refusal.status === 401 || refusal.status === 403
    super(message, denied ? CONNECTION_EXIT.denied : EXIT.failed)
    this.status = refusal.status
    this.ledgerCode = refusal.code
  }
}

export type LedgerClient = {
  request<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<T>
}

const DEFAULT_URL = 'http://localhost:7575'
/** The slowest administrative request is far below this. */
const REQUEST_TIMEOUT_MS = 30_000

/** Options that every command has which talks to a node. */
export const connectionOptions = (command: Command): Command =>
  command
    .option('--url <url>', `ledger API of the node (or ANNALS_URL; default ${DEFAULT_URL})`)
    .option('--token <token>', 'bearer token (better: ANNALS_TOKEN, which others cannot see)')
    .option('--json', 'print JSON for machines')

export type ConnectionOptions = { url?: string; token?: string; json?: boolean }

export const connect = ({ env }: CliContext, options: ConnectionOptions): LedgerClient => {
  const url = options.url ?? env.ANNALS_URL ?? DEFAULT_URL
  const token = (options.token ?? env.ANNALS_TOKEN)?.trim() || undefined
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CommandError(`${url} is not an http or https URL. Check --url.`, EXIT.usage)
  }
  // A header cannot hold anything else, and the message must not show what was given.
  if (token !== undefined && !/^[!-~]*$/.test(token)) {
    throw new CommandError('The token has a blank or a character that no token has.', EXIT.usage)
  }
  return {
    async request(method, path, body) {
      const response = await send(`${url.replace(/\/+$/, '')}${path}`, {
        method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      })
      if (response.ok) return response.json
      throw refusal(response, token !== undefined)
    },
  }
}

/** How the default identity provider is called; in the API its id is empty. */
export const DEFAULT_PROVIDER_NAME = 'default'

export const providerId = (name: string | undefined): string =>
  name === undefined || name === DEFAULT_PROVIDER_NAME ? '' : name

export const providerName = (id: string): string => (id === '' ? DEFAULT_PROVIDER_NAME : id)

/** Prints a line for the reader or the next program. */
export const printLine = ({ terminal }: CliContext, line: string): void => {
  terminal.stdout.write(`${line}\n`)
}

/** Prints a line about what is going on. */
export const printNote = ({ terminal }: CliContext, line: string): void => {
  terminal.stderr.write(`${line}\n`)
}

/** One answer: JSON for machines or text for people. */
export const printAnswer = (
  context: CliContext,
  options: ConnectionOptions,
  json: unknown,
  text: () => string,
): void => printLine(context, options.json ? JSON.stringify(json) : text())

type Answer = { ok: boolean; status: number; json: never }

const send = async (url: string, init: RequestInit): Promise<Answer> => {
  let status = 0
  try {
    const response = await fetch(url, init)
    status = response.status
    return { ok: response.ok, status, json: (await response.json()) as never }
  } catch (error) {
    if (status !== 0) {
      throw new CommandError(
        `${new URL(url).origin} answered ${status} with something that is not JSON. Is it the API of a node? Check --url.`,
        CONNECTION_EXIT.unreachable,
      )
    }
    throw new CommandError(
      `The node at ${new URL(url).origin} cannot be reached (${reasonOf(error as Error)}). Check --url, and that the node runs: \`annals start\` starts one.`,
      CONNECTION_EXIT.unreachable,
    )
  }
}

/** The name of an error of fetch says nothing; what lies behind it does. */
const reasonOf = (error: Error): string => {
  if (error.name === 'TimeoutError') return `no answer within ${REQUEST_TIMEOUT_MS / 1000} seconds`
  const { code, message } = (error.cause ?? {}) as { code?: string; message?: string }
  return code ?? (message || error.message)
}

const refusal = ({ status, json }: Answer, withToken: boolean): NodeRefusal => {
  const { code, cause, error, correlationId } = (json ?? {}) as Record<string, string | undefined>
  const ids = correlationId ? ` (correlation id ${correlationId})` : ''
  const remedy = withToken
    ? 'Get a new token.'
    : 'Give a token with --token or ANNALS_TOKEN; `annals token` makes one for a node without a provider.'
  const messages: Record<number, string> = {
    401: `The node did not accept the token${ids}. ${remedy}`,
    403: `The node refused${ids}: the token's user lacks the right, or the user asked for belongs to another identity provider.`,
  }
  const message = messages[status] ?? `The node refused: ${cause ?? error ?? `status ${status}`}`
  return new NodeRefusal(message, { status, code })
}
