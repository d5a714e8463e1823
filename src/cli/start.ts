import { createLog } from '../base/log.ts'
import { readSoftware } from '../base/software.ts'
import type { Ports } from '../listen.ts'
import { type RunningNode, startNode } from '../node.ts'
import { EXIT, printNumber, type Terminal } from './output.ts'

export type StartArguments = { data: string; ports: Ports; empty: boolean; json: boolean }

const HOST = '127.0.0.1'
const PAGE_SIZE_MAX = 2_147_483_647
const CACHE_BYTES = 128 * 1024 * 1024
const COMPRESSED_CACHE_BYTES = 32 * 1024 * 1024
/**
 * A Ctrl-C reaches the node twice when npm or the launcher passes it on; a second signal that soon
 * is the same one.
 */
const SAME_SIGNAL_MS = 250

/** `annals start`: runs a node until a signal, then closes it in order. */
export async function runStart(args: StartArguments, terminal: Terminal): Promise<number> {
  const log = createLog({ level: 'info', pretty: terminal.isInteractive })
  const stop = waitForSignal()
  const node = await startNode({
    log,
    dataDirectory: args.data,
    host: HOST,
    ports: args.ports,
    empty: args.empty,
    scan: {
      pageSizeMax: PAGE_SIZE_MAX,
      cacheBytes: CACHE_BYTES,
      compressedCacheBytes: COMPRESSED_CACHE_BYTES,
    },
  })
  terminal.stdout.write(args.json ? readyLine(node) : banner(node, args))
  await stop
  if (!args.json) terminal.stdout.write('Stopping.\n')
  await node.close()
  return EXIT.ok
}

function readyLine({ urls }: RunningNode): string {
  return `${JSON.stringify({
    event: 'ready',
    ledgerUrl: urls.ledger,
    scanUrl: urls.scan,
    validatorUrl: urls.validator,
    metricsUrl: urls.metrics,
  })}\n`
}

function banner({ urls, history, exampleUpdates }: RunningNode, args: StartArguments): string {
  const updates = history.view.updates
  const content =
    exampleUpdates > 0
      ? `the example history, ${printNumber(exampleUpdates)} updates (start with --empty to leave it out)`
      : updates === 0
        ? 'an empty history; fill it with annals import'
        : `${printNumber(updates)} updates`
  return `Annals ${readSoftware().version} is ready.

  holds      ${content}
  data       ${args.data}
  scan       ${urls.scan}
  ledger     ${urls.ledger}
  validator  ${urls.validator}
  metrics    ${urls.metrics}

Try:   curl -s ${urls.scan}/v1/updates -d '{"page_size":2}'
Stop:  Ctrl-C
`
}

/** Resolves at the first signal; the second ends the process at once. */
function waitForSignal(): Promise<void> {
  let firstAt: number | undefined
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (firstAt !== undefined && performance.now() - firstAt > SAME_SIGNAL_MS) {
          process.exit(EXIT.failed)
        }
        firstAt ??= performance.now()
        resolve()
      })
    }
  })
}
