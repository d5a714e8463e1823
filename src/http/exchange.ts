import type { Dispatcher } from 'undici'

/**
 * One request and its answer in the pieces in which it arrives. Much cheaper for large answers than
 * `fetch`, whose streams copy every piece. What the callbacks throw ends the exchange.
 */
export type Exchange = (
  url: string,
  request: {
    method: 'GET' | 'POST'
    headers: Record<string, string>
    body?: string | undefined
    signal: AbortSignal
    onHead(status: number, header: (name: string) => string | undefined): void
    onChunk(bytes: Buffer): void
  },
) => Promise<void>

/** Answers arrive as they are sent; whoever asks for a content coding undoes it. */
export function exchangeThrough(dispatcherFor: (host: string) => Dispatcher): Exchange {
  return (url, { method, headers, body, signal, onHead, onChunk }) =>
    new Promise((resolve, reject) => {
      const { origin, pathname, search, hostname } = new URL(url)
      let end: ((reason: Error) => void) | undefined
      const onAbort = () => end?.(new Error('The request was given up.'))
      const settle = (error?: Error) => {
        signal.removeEventListener('abort', onAbort)
        if (error === undefined) resolve()
        else reject(error)
      }
      if (signal.aborted) {
        settle(new Error('The request was given up.'))
        return
      }
      signal.addEventListener('abort', onAbort, { once: true })
      dispatcherFor(hostname).dispatch(
        {
          origin,
          path: pathname + search,
          method,
          headers,
          body: body ?? null,
          // Whoever waits has limits of his own.
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        {
          onRequestStart(controller) {
            end = (reason) => controller.abort(reason)
            if (signal.aborted) onAbort()
          },
          onResponseStart(controller, status, answered) {
            // An interim answer such as 103 comes before the real one.
            if (status < 200) return
            try {
              onHead(status, (name) => headerOf(answered, name))
            } catch (error) {
              controller.abort(error as Error)
            }
          },
          onResponseData(controller, chunk) {
            try {
              onChunk(chunk)
            } catch (error) {
              controller.abort(error as Error)
            }
          },
          onResponseEnd: () => settle(),
          onResponseError: (_controller, error) => settle(error),
        },
      )
    })
}

function headerOf(
  headers: Record<string, string | string[] | undefined>,
  name: string,
): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** The same through any `fetch`, which undoes content codings itself. */
export function exchangeByFetch(fetch: typeof globalThis.fetch): Exchange {
  return async (url, { method, headers, body, signal, onHead, onChunk }) => {
    const init = { method, headers, signal, redirect: 'manual' } as const
    const response = await fetch(url, body === undefined ? init : { ...init, body })
    const { headers: answered } = response
    // The coding is undone already, and the length is that of the packed body.
    const hidden = answered.has('content-encoding') ? ['content-encoding', 'content-length'] : []
    onHead(response.status, (name) =>
      hidden.includes(name) ? undefined : (answered.get(name) ?? undefined),
    )
    const reader = response.body?.getReader()
    if (reader === undefined) return
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        onChunk(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      }
    } catch (error) {
      await reader.cancel().catch(() => {})
      throw error
    }
  }
}
