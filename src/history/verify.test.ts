import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import { newPool, openTestHistory } from '../../test/support/histories.ts'
import {
  assignment,
  exercisedEvent,
  importUpdate,
  plainLines,
  transactionOf,
  unassignment,
} from '../../test/support/sample-items.ts'
import type { Db } from '../db/db.ts'
import { openHistory } from './history.ts'
import type { PreparePool } from './prepare-pool.ts'
import { FaultError, verifyHistory } from './verify.ts'
import { DamagedHistoryError } from './view.ts'

const UPDATES = 62
const ID = '1220ff'
const LINES = [
  JSON.stringify(importUpdate('i1', '00aa')),
  JSON.stringify(importUpdate('i2', '00ab')),
  ...plainLines(UPDATES - 3).map((line, n) =>
    line.replace(
      '"events_by_id"',
      `"external_transaction_hash":"${'ab'.repeat(n + 1)}","events_by_id"`,
    ),
  ),
  JSON.stringify(unassignment({ record_time: '2025-06-01T00:00:00Z' })),
  JSON.stringify(assignment({ record_time: '2025-06-01T00:00:01Z' })),
  // With the source's own event numbers, which an export must find in its bytes.
  JSON.stringify(
    transactionOf([exercisedEvent(`${ID}:5`, [`${ID}:9`]), exercisedEvent(`${ID}:9`, [])], {
      update_id: ID,
      record_time: '2025-06-01T00:00:02Z',
    }),
  ),
]

/** What verify says of the store as it is now, read anew. */
async function faultOf(db: Db, pool: PreparePool): Promise<string | undefined> {
  try {
    const history = await openHistory({ db, cacheBytes: 1_000_000 })
    await verifyHistory(history, { pool })
    return undefined
  } catch (error) {
    assert(
      error instanceof FaultError || error instanceof DamagedHistoryError,
      `${(error as Error).stack}`,
    )
    return error.message
  }
}

type Bytes = Record<'bytes', Uint8Array>

/** Changes one byte of a column. */
async function flip(
  db: Db,
  where: { table: string; key: string; id: number; column: string; at: number },
) {
  const { table, key, id, column, at } = where
  const [row] = await db.query<Bytes>(`select ${column} as bytes from ${table} where ${key} = ?`, [
    id,
  ])
  const bytes = Buffer.from((row as Bytes).bytes)
  const index = at < 0 ? bytes.length + at : at
  bytes[index] = (bytes[index] as number) ^ 1
  await db.execute(`update ${table} set ${column} = ? where ${key} = ?`, [bytes, id])
}

type Damage = { name: string; sql: string[] } | { name: string; flip: Parameters<typeof flip>[1] }

const frameByte = (column: string, at: number): Damage => ({
  name: `byte ${at} of ${column} of frame 1`,
  flip: { table: 'frame', key: 'number', id: 1, column, at },
})
const tailByte = (column: string, at: number): Damage => ({
  name: `byte ${at} of ${column} of update 61`,
  flip: { table: 'tail', key: 'ordinal', id: UPDATES - 1, column, at },
})

const DAMAGES: [damage: Damage, says: RegExp][] = [
  ...['entries', 'compact', 'protobuf'].flatMap((column): [Damage, RegExp][] =>
    [0, 40, -1].map((at) => [
      frameByte(column, at),
      /^Frame 1 \(updates 25 to 49\) does not have its checksum/,
    ]),
  ),
  [
    { name: 'checksum', sql: ['update frame set checksum = checksum + 1 where number = 0'] },
    /^Frame 0 \(updates 0 to 24\).*checksum/,
  ],
  [
    { name: 'a frame is gone', sql: ['delete from frame where number = 1'] },
    /^Frame 1 .*is missing/,
  ],
  [
    {
      name: 'frames are swapped',
      sql: ['update frame set number = number - 10', 'update frame set number = -9 - number'],
    },
    /^Frame 0 .*starts at another position than the directory says/,
  ],
  [
    { name: 'a directory entry is gone', sql: ['delete from frame_directory where number = 1'] },
    /has 2 frames .*directory lists 1 /,
  ],
  [
    {
      name: 'the directory says another time',
      sql: ['update frame_directory set micros = micros + 1 where number = 1'],
    },
    /^Frame 1 .*directory says/,
  ],
  [
    {
      name: 'the directory says another migration',
      sql: ['update frame_directory set migration_id = 7 where number = 0'],
    },
    /^Frame 0 .*directory says/,
  ],
  [
    { name: 'a key is gone', sql: ['delete from update_key where ordinal = 30'] },
    /^Update 12200000001e at 1,2025-01-01T00:00:30.000000Z cannot be looked up by its id/,
  ],
  [
    { name: 'a tail row is gone', sql: ['delete from tail where ordinal = 55'] },
    /has 2 frames and 62 updates, but .* tail holds 11 /,
  ],
  [
    {
      name: 'tail rows are swapped',
      sql: [
        'update tail set ordinal = 1000 where ordinal = 55',
        'update tail set ordinal = 55 where ordinal = 56',
        'update tail set ordinal = 56 where ordinal = 1000',
      ],
    },
    /^Update 122000000038 at 1,2025-01-01T00:00:56.000000Z cannot be looked up/,
  ],
  [
    { name: 'too many updates', sql: ['update history set updates = updates + 1'] },
    /has 2 frames and 63 updates, but/,
  ],
  [
    { name: 'too few updates', sql: ['update history set updates = updates - 1'] },
    /last offset|ends at/,
  ],
  [
    { name: 'too few frames', sql: ['update history set frames = frames - 1'] },
    /has 1 frames and 62 updates, but/,
  ],
  [{ name: 'too many frames', sql: ['update history set frames = frames + 1'] }, /has 3 frames/],
  [
    { name: 'no imports', sql: ['update history set imports = 0'] },
    /has 0 import updates, but holds 2/,
  ],
  [
    { name: 'too many imports', sql: ['update history set imports = 3'] },
    /it has 65 updates, but holds 64/,
  ],
  [
    { name: 'an import is gone', sql: ["delete from import_update where update_id = 'i1'"] },
    /it has 64 updates, but holds 63/,
  ],
  [
    { name: 'another last offset', sql: ['update history set last_offset = 9'] },
    /last offset is 9, but it is 0+40/,
  ],
  [
    {
      name: 'another end',
      sql: ["update history set last_record_time = '2026-01-01T00:00:00.000000Z'"],
    },
    /ends at 1,2026-01-01\S+, but ends at 1,2025-06-01T00:00:02/,
  ],
  [
    {
      name: 'another range',
      sql: ["update synchronizer_range set first_record_time = '2020-01-01T00:00:00.000000Z'"],
    },
    /The recorded times of synchronizer/,
  ],
  [
    { name: 'a range is gone', sql: ['delete from synchronizer_range'] },
    /A synchronizer of the history is not recorded/,
  ],
  [tailByte('compact', -4), /cannot be|not stored as it must be/],
  [tailByte('protobuf', 30), /not valid|not stored as it must be|cannot be/],
  [
    tailByte('protobuf', -2),
    /^(The update after|What is stored after) 1,2025-06-01T00:00:01|^Update/,
  ],
  [tailByte('entry', 0), /stands in the index at 0,/],
  [tailByte('entry', 16), /not stored|cannot be read/],
  [tailByte('entry', 20), /not valid|cannot be read/],
  [
    {
      name: 'an import says something else',
      flip: { table: 'import_update', key: 'migration_id', id: 1, column: 'compact', at: -4 },
    },
    /i1|i2/,
  ],
]

forEachEngine((engine) => {
  test(`a sound history is found sound on ${engine.name}`, async (t) => {
    const pool = newPool(t)
    const reports: number[] = []
    const history = await openTestHistory(t, engine, LINES)
    const result = await verifyHistory(history, {
      pool,
      onProgress: (p) => reports.push(p.checked),
    })
    assert.deepEqual([result.checked, result.total], [64, 64])
    assert.equal(reports.at(-1), 64)
    const empty = await openTestHistory(t, engine)
    assert.equal((await verifyHistory(empty, { pool })).checked, 0)
  })

  test(`every kind of damage is found and named on ${engine.name}`, async (t) => {
    const pool = newPool(t)
    const { db } = await openTestHistory(t, engine, LINES)
    const tables = await backUp(db)
    for (const [damage, says] of DAMAGES) {
      if ('flip' in damage) await flip(db, damage.flip)
      else for (const sql of damage.sql) await db.execute(sql)
      const fault = await faultOf(db, pool)
      assert.match(fault ?? 'sound', says, damage.name)
      await restore(db, tables)
    }
    assert.equal(await faultOf(db, pool), undefined)
  })
})

type Table = { name: string; rows: Record<string, string | number | bigint | Uint8Array | null>[] }

async function backUp(db: Db): Promise<Table[]> {
  const names = 'history tail frame frame_directory update_key import_update synchronizer_range'
  return Promise.all(
    names.split(' ').map(async (name) => ({ name, rows: await db.query(`select * from ${name}`) })),
  )
}

async function restore(db: Db, tables: Table[]): Promise<void> {
  for (const { name, rows } of tables) {
    await db.execute(`delete from ${name}`)
    const columns = Object.keys(rows[0] as object)
    await db.executeMany(
      `insert into ${name} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      rows.map((row) => columns.map((column) => row[column] as string)),
    )
  }
}
