import { readFile } from 'node:fs/promises'
import { prepareLine } from './encode.ts'
import type { History } from './history.ts'

const EXAMPLE_FILE = new URL('../../examples/history.ndjson', import.meta.url)

/** Fills an empty history with the example that comes with the package; returns its length. */
export async function loadExample(history: History): Promise<number> {
  const text = await readFile(EXAMPLE_FILE, 'utf8')
  const updates = text
    .split('\n')
    .filter((line) => line !== '')
    .map(prepareLine)
  await history.append(updates)
  return updates.length
}
