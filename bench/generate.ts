// Histories for measurements: any number of updates with the sizes and the variety of a deployed network's, the same
// bytes for the same seed. Lines are lossless items with labels, as `annals import` reads them.

import { pipeline, Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { type Draw, seededDraw } from './draw.ts'
import { printReassignment, printTransaction, type World } from './generate-items.ts'

export type GenerateOptions = { count: number; seed: number }

const START_MICROS = Date.UTC(2024, 5, 25) * 1000
const MIGRATIONS = 4

/** Of a migration's updates, the part at its end whose time span the next migration covers again. */
const OVERLAP_RATIO = 0.01
/** Keeps the memory small however many updates are made. */
const OVERLAP_MAX = 2000
const MEAN_PAUSE_MICROS = 220_000

const REASSIGNMENT_RATIO = 0.03

/** Parties join as the network grows; the bound keeps the memory small. */
const FIRST_PARTIES = 300
const NEW_PARTY_RATIO = 0.05
const PARTIES_MAX = 20_000
/** Coins that later updates may use. */
const COINS_MAX = 4096

/** A write for every line would cost more than making the line. */
const BATCH_CHARACTERS = 256 * 1024

export function* generateHistory({ count, seed }: GenerateOptions): Generator<string> {
  const draw = seededDraw(seed)
  const world = foundWorld(draw)
  const times = recordTimes(draw, count)
  for (let index = 0; index < count; index += 1) {
    const migration = migrationOf(index, count)
    const micros = times.next(migration)
    if (draw.chance(NEW_PARTY_RATIO) && world.parties.length < PARTIES_MAX)
      world.parties.push(newParty(draw, world.parties.length))
    yield draw.chance(REASSIGNMENT_RATIO)
      ? printReassignment(draw, world, { migration, micros })
      : printTransaction(draw, world, { migration, micros })
    // The oldest coins are forgotten, not spent: nothing refers to them again.
    if (world.coins.length > COINS_MAX) world.coins.splice(0, COINS_MAX / 4)
  }
}

function foundWorld(draw: Draw): World {
  return {
    dso: `DSO::1220${draw.hex(64)}`,
    parties: Array.from({ length: FIRST_PARTIES }, (_, index) => newParty(draw, index)),
    synchronizers: [`global-domain::1220${draw.hex(64)}`, `exchange-domain::1220${draw.hex(64)}`],
    packages: {
      amulet: draw.hex(64),
      wallet: draw.hex(64),
      tokenStandard: draw.hex(64),
    },
    coins: [],
    known: new Map(),
    rules: `00${draw.hex(64)}ca121220${draw.hex(64)}`,
  }
}

const HINTS = [
  'alice',
  'bob',
  'auth0_007c',
  'digital-harbor-validator',
  'wallet',
  'app-provider',
  'sv',
]

function newParty(draw: Draw, index: number): string {
  const id = `${draw.pick(HINTS)}-${index}::1220${draw.hex(64)}`
  // A copy: a slice would keep its whole block of hex digits alive.
  return Buffer.from(id).toString()
}

function migrationOf(index: number, count: number): number {
  return Math.floor((index * MIGRATIONS) / count)
}

/** Rising within a migration; a new one starts again before the end of the last and shares some of its times. */
function recordTimes(draw: Draw, count: number) {
  const overlap = Math.max(
    1,
    Math.min(OVERLAP_MAX, Math.floor((count / MIGRATIONS) * OVERLAP_RATIO)),
  )
  let current = 0
  let micros = START_MICROS
  let latest: number[] = []
  let shared: number[] = []
  return {
    next(migration: number): number {
      if (migration !== current) {
        current = migration
        shared = latest.slice(-overlap).filter((_, index) => index % 2 === 0)
        latest = []
      }
      micros = shared.shift() ?? micros + 1 + draw.below(2 * MEAN_PAUSE_MICROS)
      latest.push(micros)
      if (latest.length > 2 * overlap) latest = latest.slice(-overlap)
      return micros
    },
  }
}

function main(): void {
  const { values } = parseArgs({
    options: { count: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
  })
  const count = Number(values.count)
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(count) || count < 0 || !Number.isSafeInteger(seed)) {
    process.stderr.write(
      '--count and --seed are whole numbers, for example --count 1000 --seed 1.\n',
    )
    process.exitCode = 2
    return
  }
  writeLines(generateHistory({ count, seed }))
}

/** Waits for a slow reader, and ends quietly when the reader goes away, as `head` does. */
function writeLines(lines: Iterable<string>): void {
  const source = Readable.from(batches(lines), { objectMode: true, highWaterMark: 1 })
  pipeline(source, process.stdout, (error) => {
    if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  })
}

function* batches(lines: Iterable<string>): Generator<string> {
  let batch = ''
  for (const line of lines) {
    batch += `${line}\n`
    if (batch.length < BATCH_CHARACTERS) continue
    yield batch
    batch = ''
  }
  if (batch !== '') yield batch
}

if (import.meta.main) main()
