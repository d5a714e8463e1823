import type { Db, SqlValue, Statement } from '../db/db.ts'

/** Both engines take more parameters than this in one statement. */
const PARAMS_MAX = 30_000
/** Rows of one statement. */
const ROWS_MAX = 128

/**
 * Runs statements of which none needs the effect of another, all or none. A PostgreSQL server gets
 * them as one, which is a transaction by itself, because the way there and back takes longer than
 * most of them; SQLite knows no such statement, but gets them in one message.
 */
export async function runTogether(db: Db, statements: readonly Statement[]): Promise<void> {
  const last = statements.at(-1)
  if (last === undefined) return
  const params = statements.flatMap((statement) => statement.params)
  if (db.engine === 'sqlite' || params.length > PARAMS_MAX) {
    await db.executeAll(statements)
    return
  }
  const others = statements.slice(0, -1).map(({ sql }, index) => `w${index} as (${sql})`)
  const head = others.length === 0 ? '' : `with ${others.join(', ')} `
  await db.execute(`${head}${last.sql}`, params)
}

/** Inserts of any number of rows. */
export function insertsOf(
  table: string,
  columns: string,
  rows: readonly SqlValue[][],
): Statement[] {
  return inGroups(rows).map((some) => {
    const values = some.map((row) => `(${row.map(() => '?').join(', ')})`).join(', ')
    return { sql: `insert into ${table} (${columns}) values ${values}`, params: some.flat() }
  })
}

/** Groups of sizes that are powers of two, so that there are few different statements to prepare. */
export function inGroups<T>(rows: readonly T[]): T[][] {
  const groups: T[][] = []
  for (let start = 0; start < rows.length; ) {
    const size = Math.min(ROWS_MAX, 2 ** Math.floor(Math.log2(rows.length - start)))
    groups.push(rows.slice(start, start + size))
    start += size
  }
  return groups
}
