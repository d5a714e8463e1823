import type { FastifyInstance } from 'fastify'
import type { MirrorStatus } from './status.ts'

/** What the mirror knows, as JSON; register under `/api/scan`. */
export async function mirrorRoutes(
  app: FastifyInstance,
  { status }: { status(): Promise<MirrorStatus> },
): Promise<void> {
  app.get('/v0/annals/mirror', async (_request, reply) =>
    reply.header('cache-control', 'no-store').send(await status()),
  )
}

/** The same for people, at `/mirror`: one page without scripts. */
export async function mirrorPage(
  app: FastifyInstance,
  { status }: { status(): Promise<MirrorStatus> },
): Promise<void> {
  app.get('/mirror', async (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
      .header('x-content-type-options', 'nosniff')
      .send(printPage(await status())),
  )
}

function printPage(status: MirrorStatus): string {
  const { agreement, last } = status
  const end = last === null ? 'nothing yet' : `${last.migrationId}, ${last.recordTime}`
  const rows: [string, string][] = [
    ['State', status.reason === null ? status.phase : `${status.phase}: ${status.reason}`],
    ['This node', status.role],
    ['Updates', status.updates.toLocaleString('en-US')],
    ['Newest', end],
    ['Behind', status.behindSeconds === null ? 'unknown' : `${status.behindSeconds} s`],
    [
      'Agreement',
      `${agreement.needed} of ${agreement.asked} asked; ${agreement.known} scans known, of which ${agreement.faulty} may be faulty`,
    ],
    ...(status.missingImports === null
      ? []
      : [['Left out', status.missingImports] as [string, string]]),
  ]
  const peers = status.peers.map((peer) => [
    peer.svName,
    peer.address,
    String(peer.answers),
    String(peer.failures),
    String(peer.dissents),
    peer.lastMilliseconds === null ? '' : `${peer.lastMilliseconds} ms`,
    peer.lastFailure ?? '',
  ])
  const dissents = status.dissents.map((dissent) => [
    dissent.at,
    dissent.svName,
    dissent.address,
    dissent.after === null
      ? `the beginning + ${dissent.index}`
      : `${dissent.after.migrationId}, ${dissent.after.recordTime} + ${dissent.index}`,
    dissent.encoding,
    dissent.agreed,
    dissent.found,
  ])
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mirror</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 0 0 2rem }
th, td { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #ddd }
td { overflow-wrap: anywhere; max-width: 40rem }
pre { background: #f4f4f4; padding: 1rem; overflow-x: auto }
</style>
</head>
<body>
<h1>Mirror</h1>
<table>${rows.map(([name, value]) => `<tr><th scope="row">${escapeHtml(name)}</th><td>${escapeHtml(value)}</td></tr>`).join('')}</table>
<h2>Scans</h2>
${table(['Name', 'Address', 'Answers', 'Failures', 'Dissents', 'Last answer', 'Last failure'], peers)}
<h2>Dissents</h2>
${dissents.length === 0 ? '<p>None.</p>' : table(['Time', 'Name', 'Address', 'After', 'Encoding', 'Agreed', 'Found'], dissents)}
<h2>JSON</h2>
<pre>${escapeHtml(JSON.stringify({ ...status, dissents: status.dissents.length }, undefined, 2))}</pre>
</body>
</html>
`
}

function table(columns: string[], rows: string[][]): string {
  const head = columns.map((title) => `<th scope="col">${escapeHtml(title)}</th>`).join('')
  const body = rows
    .map((cells) => `<tr>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`)
    .join('\n')
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Names and items come from strangers. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string)
}
