import { Command } from 'commander'
import {
  type ConnectionOptions,
  connect,
  connectionOptions,
  EXIT_CODES_HELP,
  printLine,
} from './ledger-client.ts'
import type { CliContext } from './output.ts'
import { CommandError, EXIT } from './output.ts'
import { formatTable } from './table.ts'

type Entry = {
  at: string
  caller: { userId: string | null; identityProviderId: string }
  action: string
  subject: { kind: string; id: string }
  traceId: string
}
type AuditOptions = ConnectionOptions & {
  user?: string
  idp?: string
  party?: string
  limit: string
}

/** The largest page that a node gives. */
const PAGE_SIZE_MAX = 1000

const EXAMPLES = `
Examples:
  annals audit
  annals audit --user alice --limit 20
  annals audit --json --limit 100000 > audit.ndjson

With --json each line is one entry with what was before and after.
${EXIT_CODES_HELP}`

/** annals audit: who changed what, newest first. */
export const auditCommand = (context: CliContext): Command =>
  connectionOptions(new Command('audit').description('List administrative changes, newest first.'))
    .option('--user <id>', 'of this user')
    .option('--idp <id>', 'of this identity provider')
    .option('--party <id>', 'of this party')
    .option('--limit <count>', 'how many', '50')
    .addHelpText('after', EXAMPLES)
    .action((options: AuditOptions) => listAudit(context, options))

const listAudit = async (context: CliContext, options: AuditOptions): Promise<void> => {
  const limit = /^\d{1,9}$/.test(options.limit) ? Number(options.limit) : 0
  if (limit < 1) throw new CommandError('--limit must be a number from 1.', EXIT.usage)
  const client = connect(context, options)
  const entries: Entry[] = []
  let pageToken = ''
  do {
    const pageSize = String(Math.min(limit - entries.length, PAGE_SIZE_MAX))
    const query = new URLSearchParams({ pageSize, pageToken })
    for (const name of ['user', 'idp', 'party'] as const) {
      const id = options[name]
      if (id !== undefined) query.set(name, id)
    }
    const page = await client.request<{ entries: Entry[]; nextPageToken: string }>(
      'GET',
      `/v2/audit?${query}`,
    )
    entries.push(...page.entries)
    pageToken = page.nextPageToken
  } while (pageToken !== '' && entries.length < limit)
  if (options.json) {
    for (const entry of entries) printLine(context, JSON.stringify(entry))
    return
  }
  printLine(
    context,
    formatTable(
      ['TIME', 'CALLER', 'ACTION', 'SUBJECT', 'TRACE'],
      entries.map(({ at, caller, action: what, subject, traceId }) => [
        at,
        caller.userId ?? '-',
        what,
        subject.id,
        traceId,
      ]),
    ),
  )
}
