// Which pages are measured: their sizes, where they stand, how they are encoded.

import type { Encoding } from '../src/history/encode.ts'
import type { ContentCoding } from '../src/http/content-coding.ts'
import { seededDraw } from './draw.ts'
import type { Expected } from './workspace.ts'

export type PageRow = {
  cache: 'hot' | 'beyond'
  size: number
  order: 'sequential' | 'random'
  encoding: Encoding
  coding: ContentCoding
}

/** A page as the ordinals of its updates, the last excluded. */
export type PageRange = { from: number; to: number }

const SIZES = [1, 100, 1000]
const ORDERS = ['sequential', 'random'] as const
const ENCODINGS = ['compact_json', 'protobuf_json'] as const
const COMPRESSED = ['gzip', 'zstd'] as const

/**
 * Uncompressed, every combination. Compressed, every size and order of the usual encoding when hot; of
 * the other encoding and beyond the cache only the usual size, so that a run stays short.
 */
export function planRows(count: number): PageRow[] {
  const rows: PageRow[] = []
  for (const cache of ['hot', 'beyond'] as const) {
    for (const coding of ['identity', ...COMPRESSED] as const) {
      for (const encoding of ENCODINGS) {
        for (const size of SIZES) {
          const isUsual = encoding === 'compact_json' && cache === 'hot'
          const isMeasured = coding === 'identity' || isUsual || size === 100
          if (!isMeasured || size > count) continue
          for (const order of ORDERS) rows.push({ cache, size, order, encoding, coding })
        }
      }
    }
  }
  return rows
}

/** Updates whose decoded frames fit into the usual cache of 64 MiB, in either encoding. */
const HOT_UPDATES_MAX = 4000
/** Small pages are many, so that those beyond the cache do not all lie in a few frames. */
const PAGES_MAX = 1000
const SEED = 2

/**
 * Sequential pages are those of a client that follows the cursors from the start, so they are whole
 * frames; random ones start anywhere.
 */
export function planPages(row: PageRow, count: number): PageRange[] {
  const hot = Math.min(count, HOT_UPDATES_MAX)
  const pages = Math.min(PAGES_MAX, Math.floor(hot / row.size))
  const draw = seededDraw(SEED)
  const last = (row.cache === 'hot' ? hot : count) - row.size
  return Array.from({ length: pages }, (_, page) => {
    const from = row.order === 'sequential' ? page * row.size : draw.below(last + 1)
    return { from, to: from + row.size }
  })
}

/** The body of the request for a page. */
export function printPageRequest(row: PageRow, page: PageRange, expected: Expected): string {
  const before = expected.positions[page.from - 1]
  return JSON.stringify({
    page_size: row.size,
    ledger_value_encoding: row.encoding,
    ...(before === undefined
      ? {}
      : {
          after: {
            after_migration_id: Number(before.migrationId),
            after_record_time: before.recordTime,
          },
        }),
  })
}
