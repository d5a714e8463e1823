import { createReadStream } from 'node:fs'
import { migrate, readMigrations } from '../../src/db/migrate.ts'
import { openDb } from '../../src/db/open.ts'
import { openHistory } from '../../src/history/history.ts'
import { importLines } from '../../src/history/import.ts'
import { startPreparePool } from '../../src/history/prepare-pool.ts'

// A program that does what `annals import` does, on any database. It tells after every batch and every skipped update
// how many it has stored and skipped. Arguments: the database as JSON, and the file.

const [target = '', file = ''] = process.argv.slice(2)
const db = await openDb(JSON.parse(target))
await migrate(db, await readMigrations('app'))
const history = await openHistory({ db, cacheBytes: 1_000_000 })
const pool = startPreparePool({ threads: 1 })
const { stored } = await importLines(history, {
  pool,
  source: createReadStream(file, { highWaterMark: 100_000 }),
  onProgress: (progress) => process.stdout.write(`${progress.stored} ${progress.skipped}\n`),
})
await pool.close()
await db.close()
process.stdout.write(`done ${stored}\n`)
