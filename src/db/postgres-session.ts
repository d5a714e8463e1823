import assert from 'node:assert/strict'
import type pg from 'pg'
import type { SqlValue } from './db.ts'
import { DatabaseUnavailable } from './db-error.ts'
import { assertReadable, type Column, copyRows } from './postgres-copy.ts'
import { toPostgresError } from './postgres-error.ts'
import { groupRows, insertRowsText, parseInsert } from './postgres-insert.ts'
import { integerLiteral } from './postgres-types.ts'
import type { ServerWatch } from './server-watch.ts'
import { assertOneStatement, numberPlaceholders, replacePlaceholders } from './sql-text.ts'
import type { Statements } from './transaction.ts'

// The program has fewer statements than this; a bound only guards against texts made at run time.
const TEXTS_MAX = 1_000

/** What is known about statements by their text, for all connections of a database. */
export type StatementTexts = {
  numbered: Map<string, { text: string; count: number }>
  columns: Map<string, Column[]>
}

export type Session = Statements & { begin(): Promise<void>; commit(): Promise<void> }

export function createStatementTexts(): StatementTexts {
  return { numbered: new Map(), columns: new Map() }
}

/** The statements of one connection, run one after another in the order in which they were called. */
export function createSession({
  client,
  watch,
  texts,
}: {
  client: pg.ClientBase
  watch: ServerWatch
  texts: StatementTexts
}): Session {
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(sql: string, work: () => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      try {
        return await watch.guard(work)
      } catch (error) {
        throw toPostgresError(error, sql)
      }
    })
    last = turn.catch(() => {})
    return turn
  }

  function send(text: string, values: unknown[] = []): Promise<pg.QueryResult> {
    return inTurn(text, () => client.query({ text, values }))
  }

  function run(sql: string, params: SqlValue[] = []): Promise<pg.QueryResult> {
    const { text, count } = remember(texts.numbered, sql, number)
    assert.equal(params.length, count, `parameters and placeholders are as many: ${sql}`)
    return send(text, params)
  }

  async function describe(sql: string, literalSql: string): Promise<Column[]> {
    const known = texts.columns.get(sql)
    if (known !== undefined) return known
    const { fields } = await send(`select * from (${literalSql}) as described limit 0`)
    const columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }))
    assertReadable(columns)
    return remember(texts.columns, sql, () => columns)
  }

  return {
    async query<Row>(sql: string, params?: SqlValue[]) {
      return (await run(sql, params)).rows as Row[]
    },
    async queryBinary<Row>(sql: string, params: (number | bigint)[] = []) {
      const { count } = remember(texts.numbered, sql, number)
      assert.equal(params.length, count, `parameters and placeholders are as many: ${sql}`)
      const literalSql = replacePlaceholders(sql, (index) => integerLiteral(params[index]))
      const columns = await describe(sql, literalSql)
      return (await inTurn(sql, () => copyRows(client, { sql: literalSql, columns }))) as Row[]
    },
    async execute(sql, params) {
      return (await run(sql, params)).rowCount ?? 0
    },
    async executeMany(sql, rows) {
      const insert = parseInsert(sql)
      if (insert === undefined) {
        for (const row of rows) await run(sql, row)
        return
      }
      for (const group of groupRows(rows, insert.columns)) {
        await send(insertRowsText(insert, group.length), group.flat())
      }
    },
    async begin() {
      await send('begin')
    },
    async commit() {
      try {
        const { command } = await send('commit')
        assert.equal(command, 'COMMIT', 'a transaction without a failed statement is committed')
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error
        throw new DatabaseUnavailable(
          'The connection was lost during a commit; whether it was stored is not known.',
          { cause: error },
        )
      }
    },
  }
}

function number(sql: string): { text: string; count: number } {
  assertOneStatement(sql)
  return numberPlaceholders(sql)
}

function remember<T>(known: Map<string, T>, sql: string, make: (sql: string) => T): T {
  let value = known.get(sql)
  if (value === undefined) {
    value = make(sql)
    if (known.size >= TEXTS_MAX) known.clear()
    known.set(sql, value)
  }
  return value
}
