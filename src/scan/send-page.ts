import type { ServerResponse } from 'node:http'
import type { Run } from '../history/pages.ts'
import type { PageBody } from './page-body.ts'

const HEAD = Buffer.from('{"transactions":[')
const COMMA = Buffer.from(',')
const TAIL = Buffer.from(']}')

/** Below this, one copy and one write are quicker than a write for each part. */
const COPY_BYTES_MAX = 64 * 1024
/** A reader may pause, but not keep a page open for ever. */
const DRAIN_TIMEOUT_MS = 120_000

export type SentPage = { updates: number; bytes: number; isComplete: boolean }

/**
 * Sends a page. One that is a single step goes out whole, with its length; a larger one is streamed
 * step by step, each made only when the client has taken the one before. A client that goes away
 * stops the work; a failure in the middle cuts the connection, so that nobody takes a part for all.
 */
export async function sendPage(
  response: ServerResponse,
  page: { first: IteratorResult<Run[]>; steps: AsyncGenerator<Run[]> },
  body: PageBody,
): Promise<SentPage> {
  const { steps } = page
  const sent: SentPage = { updates: 0, bytes: 0, isComplete: false }
  // Not corked: Node gathers the writes of a turn by itself, and after an uncorking of chunks a response
  // may wait for ever for a drain that its socket has long had.
  const write = (parts: Buffer[]) => {
    for (const part of parts) {
      sent.bytes += part.length
      response.write(part)
    }
  }
  try {
    const parts = [...body.start(), ...body.text(HEAD)]
    let step = page.first
    if (!step.done) {
      parts.push(...(await encodeStep(step.value, body, sent)))
      step = await steps.next()
    }
    if (step.done) {
      parts.push(...body.text(TAIL), ...body.end())
      sendWhole(response, parts, sent)
      return sent
    }
    write(parts)
    for (; !step.done; step = await steps.next()) {
      if (!(await isDrained(response))) return sent
      write(await encodeStep(step.value, body, sent))
    }
    write([...body.text(TAIL), ...body.end()])
    response.end()
    sent.isComplete = true
    return sent
  } catch (error) {
    response.destroy()
    throw error
  } finally {
    await steps.return(undefined)
  }
}

function sendWhole(response: ServerResponse, parts: Buffer[], sent: SentPage): void {
  for (const part of parts) sent.bytes += part.length
  response.setHeader('content-length', sent.bytes)
  if (sent.bytes <= COPY_BYTES_MAX) {
    response.end(Buffer.concat(parts, sent.bytes))
  } else {
    response.cork()
    for (const part of parts) response.write(part)
    response.end()
    response.uncork()
  }
  sent.isComplete = true
}

async function encodeStep(runs: Run[], body: PageBody, sent: SentPage): Promise<Buffer[]> {
  const parts: Buffer[] = []
  for (const run of runs) {
    if (sent.updates > 0) parts.push(...body.text(COMMA))
    const encoded = body.run(run)
    parts.push(...(encoded instanceof Promise ? await encoded : encoded))
    sent.updates += run.updates
  }
  return parts
}

/** Waits until the client has taken what was written; false when it has gone or takes too long. */
function isDrained(response: ServerResponse): Promise<boolean> | boolean {
  if (response.destroyed) return false
  if (!response.writableNeedDrain) return true
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(), DRAIN_TIMEOUT_MS)
    const done = () => {
      clearTimeout(timer)
      response.off('drain', done).off('close', done)
      resolve(!response.destroyed)
    }
    response.on('drain', done).on('close', done)
  })
}
