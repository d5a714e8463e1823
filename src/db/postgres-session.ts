import assert from 'node:assert/strict'
import type pg from 'pg'
import type { SqlValue } from './db.ts'
import { DatabaseUnavailable, SqlError } from './db-error.ts'
import { assertReadable, type Column, copyRows } from './postgres-copy.ts'
import { toPostgresError } from './postgres-error.ts'
import { groupRows, insertRowsText, parseInsert } from './postgres-insert.ts'
import { createStatementNames, type StatementNames } from './postgres-names.ts'
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
  names: StatementNames
}

export type Session = Statements & { begin(): Promise<void>; commit(): Promise<void> }

export function createStatementTexts(): StatementTexts {
  return { numbered: new Map(), columns: new Map(), names: createStatementNames() }
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
  const { names } = texts
  let last: Promise<unknown> = Promise.resolve()
  let isInTransaction = false

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
    const name = count === 0 ? undefined : names.nameOf(text)
    return name === undefined ? send(text, params) : sendNamed(name, text, params)
  }

  async function sendNamed(
    name: string,
    text: string,
    values: SqlValue[],
  ): Promise<pg.QueryResult> {
    try {
      return await inTurn(text, () => client.query({ name, text, values }))
    } catch (error) {
      const fault = nameFault(error)
      if (fault === undefined) throw error
      if (fault === 'changed') names.renew()
      else names.giveUp()
      // The statement was not run. Outside of a transaction it is sent again, as it is.
      if (!isInTransaction) return send(text, values)
      throw new DatabaseUnavailable('A prepared statement is gone from the server. Try again.', {
        cause: error,
      })
    }
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
      isInTransaction = true
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

/**
 * What is wrong with a prepared statement, if the error is about that. `changed`: a table has got
 * another shape. `lost`: a connection pooler has put another server's connection behind ours.
 */
function nameFault(error: unknown): 'changed' | 'lost' | undefined {
  if (!(error instanceof SqlError)) return undefined
  if (error.code === '0A000' && /cached plan/.test(error.message)) return 'changed'
  return error.code === '26000' || error.code === '42P05' ? 'lost' : undefined
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
