import type { ByteCache } from '../base/byte-cache.ts'
import type { Run } from '../history/pages.ts'
import type { ContentCoding } from '../http/content-coding.ts'
import { createGzipBody, deflatePart, type GzipPart, storePart } from '../http/gzip-parts.ts'
import { compressZstdPart, storeZstdPart, ZSTD_END, ZSTD_START } from '../http/zstd-parts.ts'

/** Compressed whole frames, which many pages share. */
export type CompressedFrames = ByteCache<GzipPart | Buffer>

/** Turns the text and the runs of a page into the bytes of a response body. */
export type PageBody = {
  start(): Buffer[]
  text(bytes: Buffer): Buffer[]
  run(run: Run): Buffer[] | Promise<Buffer[]>
  end(): Buffer[]
}

export function createPageBody(
  coding: ContentCoding,
  shared: { frames: CompressedFrames; form: string },
): PageBody {
  switch (coding) {
    case 'identity':
      return identityBody
    case 'gzip':
      return gzipBody(shared)
    case 'zstd':
      return zstdBody(shared)
  }
}

const identityBody: PageBody = {
  start: () => [],
  text: (bytes) => [bytes],
  run: (run) => [run.bytes],
  end: () => [],
}

function gzipBody(shared: { frames: CompressedFrames; form: string }): PageBody {
  const body = createGzipBody()
  return {
    start: () => [body.start()],
    text: (bytes) => [body.add(storePart(bytes))],
    async run(run) {
      const part = await keep(
        shared,
        `gzip ${run.frame}`,
        run,
        deflatePart,
        (p) => p.deflated.length,
      )
      return [body.add(part)]
    },
    end: () => [body.end()],
  }
}

function zstdBody(shared: { frames: CompressedFrames; form: string }): PageBody {
  return {
    start: () => [ZSTD_START],
    text: (bytes) => [storeZstdPart(bytes)],
    async run(run) {
      return [await keep(shared, `zstd ${run.frame}`, run, compressZstdPart, (p) => p.length)]
    },
    end: () => [ZSTD_END],
  }
}

/** Sealed frames never change, so their compressed form is kept; other runs are compressed each time. */
async function keep<Part extends GzipPart | Buffer>(
  { frames, form }: { frames: CompressedFrames; form: string },
  name: string,
  run: Run,
  compress: (bytes: Buffer) => Promise<Part>,
  size: (part: Part) => number,
): Promise<Part> {
  if (run.frame === undefined) return compress(run.bytes)
  const key = `${form} ${name}`
  const known = frames.get(key) as Part | undefined
  if (known !== undefined) return known
  const part = await compress(run.bytes)
  frames.put(key, part, size(part))
  return part
}
