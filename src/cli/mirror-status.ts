import { Command } from 'commander'
import type { MirrorStatus } from '../mirror/status.ts'
import type { CommandContext } from './commands.ts'
import { CONNECTION_EXIT } from './ledger-client.ts'
import { CommandError, EXIT, printNumber } from './output.ts'
import { formatTable } from './table.ts'

const DEFAULT_URL = 'http://127.0.0.1:5012'
const REQUEST_TIMEOUT_MS = 10_000
/** Of an item, on a terminal; --json has more. */
const ITEM_CHARACTERS_MAX = 200

/** `annals mirror status`: how far a running mirror is, whom it asks, and who was contradicted. */
export function mirrorStatusCommand(context: CommandContext): Command {
  return new Command('status')
    .description('Tell how far a running mirror is, and which scans were contradicted.')
    .option('--url <url>', 'scan API of the node', DEFAULT_URL)
    .option('--json', 'print everything as JSON', false)
    .action(async (_args, command: Command) => {
      // The parent has options of the same names.
      const { url, json } = command.optsWithGlobals<{ url: string; json: boolean }>()
      const status = await fetchStatus(url)
      const { stdout } = context.terminal
      stdout.write(json ? `${JSON.stringify(status)}\n` : printStatus(status))
      context.finish(status.phase === 'stalled' ? EXIT.failed : EXIT.ok)
    })
}

async function fetchStatus(url: string): Promise<MirrorStatus> {
  const base = url.replace(/\/+$/, '').replace(/\/api\/scan$/, '')
  let response: Response
  try {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS)
    response = await fetch(`${base}/api/scan/v0/annals/mirror`, { signal })
  } catch {
    throw new CommandError(
      `No node answers at ${base}; start it, or name its scan API with --url.`,
      CONNECTION_EXIT.unreachable,
    )
  }
  if (response.status === 404) {
    throw new CommandError(
      `The node at ${base} is not a mirror: its own ledger writes its history.`,
    )
  }
  if (!response.ok) throw new CommandError(`The node at ${base} answers ${response.status}.`)
  return (await response.json()) as MirrorStatus
}

function printStatus(status: MirrorStatus): string {
  const { agreement, last } = status
  const lines = [
    `State      ${status.phase}${status.reason === null ? '' : `: ${status.reason}`}`,
    `This node  ${status.role}`,
    `Updates    ${printNumber(status.updates)}`,
    `Newest     ${last === null ? 'nothing yet' : `${last.migrationId},${last.recordTime}`}`,
    `Behind     ${status.behindSeconds === null ? 'unknown' : `${status.behindSeconds} s`}`,
    `Agreement  ${agreement.needed} of ${agreement.asked} asked; ${agreement.known} scans known, of which ${agreement.faulty} may be faulty`,
    ...(status.missingImports === null ? [] : [`Left out   ${status.missingImports}`]),
    '',
    formatTable(
      ['SCAN', 'ADDRESS', 'ANSWERS', 'FAILURES', 'DISSENTS', 'LAST FAILURE'],
      status.peers.map((peer) => [
        peer.svName,
        peer.address,
        String(peer.answers),
        String(peer.failures),
        String(peer.dissents),
        peer.lastFailure ?? '',
      ]),
    ),
  ]
  for (const dissent of status.dissents) {
    const after =
      dissent.after === null
        ? 'the beginning'
        : `${dissent.after.migrationId},${dissent.after.recordTime}`
    lines.push(
      '',
      `${dissent.at}  ${dissent.svName} (${dissent.address}) was contradicted: item ${dissent.index} after ${after}, ${dissent.encoding}`,
      `  agreed  ${cut(dissent.agreed)}`,
      `  found   ${cut(dissent.found)}`,
    )
  }
  return `${lines.join('\n')}\n`
}

/** One line without control characters, which a liar might send to a terminal. */
function cut(text: string): string {
  const plain = text.replaceAll(/\p{Cc}/gu, ' ')
  return plain.length <= ITEM_CHARACTERS_MAX ? plain : `${plain.slice(0, ITEM_CHARACTERS_MAX)}…`
}
