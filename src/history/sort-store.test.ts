import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { newDirectory } from '../../test/support/node.ts'
import { importUpdate, plainLines, transaction } from '../../test/support/sample-items.ts'
import { openSqlite } from '../db/sqlite.ts'
import { ImportError } from './import-error.ts'
import { sortLines } from './sort-store.ts'

async function sorted(directory: string, text: string): Promise<string> {
  const source = (async function* () {
    yield Buffer.from(text)
  })()
  const parts: Buffer[] = []
  for await (const line of sortLines(source, {
    directory,
    openDb: (path) => openSqlite({ path }),
  })) {
    parts.push(line)
  }
  return Buffer.concat(parts).toString()
}

test('lines come in the order of their positions, import updates by their ids, each as it was', async (t) => {
  const huge = JSON.stringify(transaction()).replace(
    '"migration_id":1',
    '"migration_id": 9007199254740993',
  )
  const before = JSON.stringify(transaction()).replace(
    '"migration_id":1',
    '"migration_id":9007199254740992',
  )
  const lines = [
    JSON.stringify(transaction({ migration_id: -(2 ** 40) })),
    JSON.stringify(importUpdate('a', '2')),
    JSON.stringify(importUpdate('b', '1')),
    JSON.stringify(importUpdate('\uffff', '3')),
    JSON.stringify(importUpdate('\u{10000}', '4')),
    ...plainLines(2500),
    before,
    huge,
  ]
  const shuffled = lines
    .toSorted((one, other) => (one.slice(-90) < other.slice(-90) ? 1 : -1))
    .toReversed()
  const mixed = shuffled.map((_, n) => shuffled[(n * 701) % shuffled.length])
  const directory = newDirectory(t)
  assert.equal(await sorted(directory, `${mixed.join('\n')}\n\n`), `${lines.join('\n')}\n`)
  assert.deepEqual(readdirSync(directory), [])
})

test('a bad line is refused with its number in the input, and nothing is left behind', async (t) => {
  const directory = newDirectory(t)
  await assert.rejects(
    sorted(directory, `${plainLines(2).join('\n')}\nnonsense\n`),
    (error: unknown) => {
      assert(error instanceof ImportError)
      assert.equal(error.line, 3)
      return true
    },
  )
  assert.deepEqual(readdirSync(directory), [])
})
