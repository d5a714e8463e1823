import assert from 'node:assert/strict'
import type { Db } from './db.ts'

/** What runs inside a transaction: everything of a `Db` but opening another one and closing. */
export type Statements = Pick<Db, 'query' | 'queryBinary' | 'execute' | 'executeMany'>

export type TransactionEnds = {
  engine: Db['engine']
  statements: Statements
  commit(): Promise<void>
  /** Must not throw: a transaction that cannot be rolled back is given up together with its connection. */
  rollback(): Promise<void>
}

/**
 * Runs the work of a transaction alike on both engines. PostgreSQL refuses every statement after a
 * failed one and turns the commit into a rollback without an error; SQLite would go on and commit the
 * rest. Here a transaction with a failed statement is lost on both: later statements are refused, and
 * the first failure is thrown even when the work has caught it.
 */
export async function runTransaction<T>(
  ends: TransactionEnds,
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  const running = new Set<Promise<unknown>>()
  let failure: { error: unknown } | undefined
  let open = true

  async function run<R>(statement: () => Promise<R>): Promise<R> {
    assert(open, 'a statement was sent to a transaction that has ended')
    if (failure !== undefined) {
      throw new Error('An earlier statement of this transaction failed; it will be rolled back.', {
        cause: failure.error,
      })
    }
    const result = statement()
    running.add(result)
    try {
      return await result
    } catch (error) {
      failure ??= { error }
      throw error
    } finally {
      running.delete(result)
    }
  }

  const { statements } = ends
  const tx: Db = {
    engine: ends.engine,
    query: (sql, params) => run(() => statements.query(sql, params)),
    queryBinary: (sql, params) => run(() => statements.queryBinary(sql, params)),
    execute: (sql, params) => run(() => statements.execute(sql, params)),
    executeMany: (sql, rows) => run(() => statements.executeMany(sql, rows)),
    async executeAll(all) {
      await Promise.all(all.map(({ sql, params }) => tx.execute(sql, params)))
    },
    transaction: () => assert.fail('a transaction cannot be opened inside another'),
    close: () => assert.fail('a transaction cannot close its database'),
  }

  async function end(): Promise<void> {
    // Statements that the work did not wait for still belong to this transaction.
    await Promise.allSettled(running)
    open = false
  }

  try {
    const result = await work(tx)
    await end()
    if (failure !== undefined) throw failure.error
    await ends.commit()
    return result
  } catch (error) {
    await end()
    await ends.rollback()
    throw error
  }
}

/** The transaction as a database: what would be transactions of their own become parts of it. */
export function withinTransaction(tx: Db): Db {
  const db: Db = { ...tx, transaction: (work) => work(db), close: async () => {} }
  return db
}
