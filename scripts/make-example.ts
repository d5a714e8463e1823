// Writes examples/history.ndjson, the history that a node loads at its first start. Run it after changing the story:
//   node scripts/make-example.ts

import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tellStory } from './example/story.ts'

export const EXAMPLE_FILE = fileURLToPath(new URL('../examples/history.ndjson', import.meta.url))

export function makeExample(): string {
  return tellStory()
    .map((line) => `${line}\n`)
    .join('')
}

if (import.meta.main) writeFileSync(EXAMPLE_FILE, makeExample())
