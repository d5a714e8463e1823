import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStatementNames } from './postgres-names.ts'

const USES = 5

function nameAfterUses(names: ReturnType<typeof createStatementNames>, text: string) {
  for (let use = 1; use < USES; use += 1) assert.equal(names.nameOf(text), undefined)
  return names.nameOf(text)
}

test('a statement that comes again and again gets a name and keeps it', () => {
  const names = createStatementNames()
  const name = nameAfterUses(names, 'select 1')
  assert.ok(name)
  assert.equal(names.nameOf('select 1'), name)
  assert.notEqual(nameAfterUses(names, 'select 2'), name)
})

test('texts that never come again and very long ones stay without a name', () => {
  const names = createStatementNames()
  for (let n = 0; n < 10_000; n += 1) assert.equal(names.nameOf(`select ${n}`), undefined)
  const long = `select '${'x'.repeat(20_000)}'`
  for (let use = 0; use < 10; use += 1) assert.equal(names.nameOf(long), undefined)
})

test('names are bounded: when there are too many, all are given out anew and none is used twice', () => {
  const names = createStatementNames()
  const given = new Set<string | undefined>()
  for (let n = 0; n < 1000; n += 1) given.add(nameAfterUses(names, `select ${n}`))
  assert.equal(given.size, 1000)
  assert.equal(names.generation, 3)
})

test('after names were given up there are none', () => {
  const names = createStatementNames()
  nameAfterUses(names, 'select 1')
  names.giveUp()
  for (let use = 0; use < 10; use += 1) assert.equal(names.nameOf('select 1'), undefined)
  assert.equal(names.generation, 1)
})
