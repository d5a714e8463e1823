import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupRows, insertRowsText, parseInsert } from './postgres-insert.ts'

test('an insert of one row becomes an insert of several', () => {
  const insert = parseInsert('insert into a (b, c) values (?, ?) on conflict do nothing')
  assert(insert !== undefined)
  assert.equal(
    insertRowsText(insert, 2),
    'insert into a (b, c) values ($1, $2),($3, $4) on conflict do nothing',
  )
})

test('statements that cannot take several rows are told apart', () => {
  const single = [
    'update a set b = ?',
    'insert into a (b) select ?',
    'insert into a (b, c) values (?, 1)',
    'insert into a (b) values (?) on conflict (b) do update set b = ?',
    'insert into a (b) values (?) on conflict (b) do update set b = excluded.b',
    "insert into a (b) values ('?')",
  ]
  for (const sql of single) assert.equal(parseInsert(sql), undefined, sql)
})

test('groups hold all rows in order, within the bounds of the protocol and of memory', () => {
  const rows = Array.from({ length: 2_500 }, (_, index) => [index])
  const groups = [...groupRows(rows, 1)]
  assert.deepEqual(groups.flat(), rows)
  assert.deepEqual(
    groups.map((group) => group.length),
    [1_000, 1_000, 500],
  )
  const wide = Array.from({ length: 100 }, () => Array.from({ length: 1_000 }, () => 0))
  for (const group of groupRows(wide, 1_000)) assert(group.length * 1_000 <= 65_535)
  const heavy = Array.from({ length: 3 }, () => [new Uint8Array(7_000_000)])
  assert.equal([...groupRows(heavy, 1)].length, 3)
})
