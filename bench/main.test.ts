import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MAIN = new URL('./main.ts', import.meta.url).pathname
const run = (args: string[]) => promisify(execFile)(process.execPath, [MAIN, ...args])

test('every section of the bench runs and reports a number in every row', async () => {
  const { stdout } = await run(['--quick', '--count', '110', '--json'])
  const { settings, sections } = JSON.parse(stdout)
  assert.equal(settings.count, 110)
  assert.deepEqual(Object.keys(sections), [
    'import',
    'mirror',
    'start',
    'pages',
    'ledger',
    'metrics',
    'tokens',
  ])
  for (const { tables } of Object.values(sections) as { tables: { rows: object[] }[] }[]) {
    for (const { rows } of tables) {
      assert.ok(rows.every((row) => Object.values(row).some(Number.isFinite)))
    }
  }
  const [pages] = sections.pages.tables
  assert.ok(pages.rows.length > 20)
  for (const row of pages.rows) assert.ok(row.node > 0 && row.raw > 0 && row.ofRaw > 0)
})

test('one section runs alone, as a table', async () => {
  const { stdout } = await run(['--quick', '--count', '30', 'import'])
  assert.match(stdout, /^Annals bench: 30 updates, \d+ cores/)
  assert.match(stdout, /bytes on disk for an update/)
  assert.doesNotMatch(stdout, /Pages per second/)
})

test('an unknown section or a count that is none is refused with the remedy', async () => {
  await assert.rejects(run(['speed']), /There is no section speed/)
  await assert.rejects(run(['--count', 'many']), /--count is a whole number of at least 1/)
})
