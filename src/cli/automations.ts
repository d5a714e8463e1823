import { Command } from 'commander'
import {
  type ConnectionOptions,
  connect,
  EXIT_CODES_HELP,
  printAnswer,
  printNote,
} from './ledger-client.ts'
import type { CliContext } from './output.ts'
import { formatTable, printable } from './table.ts'

type State = {
  name: string
  party: string
  state: string
  why: string
  last_run: string | null
  next_run: string | null
  last_outcome: { kind: string; at: string; sentence: string } | null
  last_act: { at: string; what: string; update_id: string } | null
  failures_in_a_row: number
  dry_run?: string
}
type Answer = { automations: State[]; warnings: string[] }
type AutomationsOptions = ConnectionOptions & { dryRun?: boolean }

const DEFAULT_URL = 'http://localhost:5003'
/** Of a party id, so much tells people apart. */
const PARTY_CHARACTERS = 28

const EXAMPLES = `
Examples:
  annals automations
  annals automations --dry-run
  annals automations --json | jq '.automations[].last_outcome'

With --dry-run each automation says what it would do now, and nothing is done.
${EXIT_CODES_HELP}`

/** annals automations: what the automations of a running node did, and what they would do. */
export function automationsCommand(context: CliContext): Command {
  return new Command('automations')
    .description('Show what the automations of a node did, will do, and would do now.')
    .option('--dry-run', 'say what each would do now, without doing it')
    .option(
      '--url <url>',
      `validator API of the node (or ANNALS_VALIDATOR_URL; default ${DEFAULT_URL})`,
    )
    .option('--token <token>', 'bearer token (better: ANNALS_TOKEN, which others cannot see)')
    .option('--json', 'print JSON for machines')
    .addHelpText('after', EXAMPLES)
    .action((options: AutomationsOptions) => showAutomations(context, options))
}

async function showAutomations(context: CliContext, options: AutomationsOptions): Promise<void> {
  const url = options.url ?? context.env.ANNALS_VALIDATOR_URL ?? DEFAULT_URL
  const client = connect(context, { ...options, url })
  const path = `/api/validator/v0/admin/automations${options.dryRun ? '?dry_run=true' : ''}`
  const answer = await client.request<Answer>('GET', path)
  printAnswer(context, options, answer, () => tableOf(answer, options.dryRun ?? false))
  if (options.json) return
  for (const warning of answer.warnings) printNote(context, `warning: ${printable(warning)}`)
}

function tableOf({ automations }: Answer, isDryRun: boolean): string {
  if (isDryRun) {
    return automations
      .map(({ name, party, dry_run }) => printable(`${name} of ${party}: ${dry_run ?? ''}`))
      .join('\n')
  }
  return formatTable(
    [
      'AUTOMATION',
      'PARTY',
      'STATE',
      'LAST RUN',
      'NEXT RUN',
      'FAILURES',
      'LAST OUTCOME',
      'LAST ACT',
      'UPDATE',
    ],
    automations.map((state) => [
      state.name,
      shortParty(state.party),
      state.state,
      shortTime(state.last_run),
      shortTime(state.next_run),
      String(state.failures_in_a_row),
      shortIds(state.state === 'on' ? (state.last_outcome?.sentence ?? '-') : state.why),
      shortIds(state.last_act?.what ?? '-'),
      state.last_act?.update_id ?? '-',
    ]),
  )
}

function shortParty(party: string): string {
  return party.length > PARTY_CHARACTERS ? `${party.slice(0, PARTY_CHARACTERS)}…` : party
}

/** A row with whole party ids is as wide as three terminals. */
function shortIds(sentence: string): string {
  return sentence.replace(/(::1220[0-9a-f]{4})[0-9a-f]{60}/g, '$1…')
}

function shortTime(instant: string | null): string {
  return instant === null ? '-' : `${instant.slice(0, 19)}Z`
}
