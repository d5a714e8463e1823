import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  assertOneStatement,
  numberPlaceholders,
  replacePlaceholders,
  splitStatements,
} from './sql-text.ts'

test('a script is split at semicolons outside of quotes and comments', () => {
  const script = `
    -- first; comment
    create table a (x text default ';');
    /* ; */ insert into a values ('it''s; ok'), ("odd;name");
    ;
    -- nothing but a comment
  `
  assert.deepEqual(splitStatements(script), [
    "-- first; comment\n    create table a (x text default ';')",
    `/* ; */ insert into a values ('it''s; ok'), ("odd;name")`,
  ])
})

test('a dollar-quoted body is one piece', () => {
  assert.equal(splitStatements('do $x$ begin; ? end; $x$; select 1').length, 2)
  assert.deepEqual(numberPlaceholders('select $$?$$, ?'), { text: 'select $$?$$, $1', count: 1 })
})

test('a trigger is refused', () => {
  assert.throws(() => splitStatements('create trigger t after insert on a begin select 1; end;'))
})

test('placeholders are numbered in order, except in quotes and comments', () => {
  assert.deepEqual(numberPlaceholders(`select '?', "?", ? -- ?\n, ? /* ? */`), {
    text: `select '?', "?", $1 -- ?\n, $2 /* ? */`,
    count: 2,
  })
})

test('quoted text of any content is left alone', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (literal, identifier) => {
      const quoted = `select '${literal.replaceAll("'", "''")}' as "${identifier.replaceAll('"', '""')}"`
      assert.equal(
        replacePlaceholders(`${quoted}, ?`, () => 'X'),
        `${quoted}, X`,
      )
      assert.equal(splitStatements(`${quoted}; select 2`).length, 2)
    }),
  )
})

test('a second statement in one text is refused', () => {
  assertOneStatement('select 1;')
  assert.throws(() => assertOneStatement('select 1; drop table a'), /exactly one statement/)
  assert.throws(() => assertOneStatement('-- nothing'), /exactly one statement/)
})
