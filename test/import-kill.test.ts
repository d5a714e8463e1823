import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openDb } from '../src/db/open.ts'
import { openHistory } from '../src/history/history.ts'
import { verifyHistory } from '../src/history/verify.ts'
import { forEachEngine } from './support/engines.ts'
import { exportText, newPool } from './support/histories.ts'
import { newDirectory } from './support/node.ts'
import { importUpdate, plainLines } from './support/sample-items.ts'

const UPDATES = 6_000
const KILLS = 5
/** About what a batch takes, so that the kill falls anywhere in its making. */
const KILL_DELAY_MS_MAX = 60

const IMPORTER = fileURLToPath(new URL('./support/import-child.ts', import.meta.url))

/** Runs the importer until it has told so much, or to its end; returns what it told. */
async function runUntil(t: TestContext, args: string[], lines: number): Promise<string[]> {
  const child = spawn(process.execPath, [IMPORTER, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const gone = once(child, 'exit')
  const told: string[] = []
  let held = ''
  let isDying = false
  for await (const chunk of child.stdout) {
    held += chunk
    const parts = held.split('\n')
    held = parts.pop() as string
    told.push(...parts)
    if (told.length >= lines && !isDying) {
      isDying = true
      setTimeout(() => child.kill('SIGKILL'), Math.random() * KILL_DELAY_MS_MAX)
    }
  }
  await gone
  return told
}

forEachEngine((engine) => {
  test(`an import that is killed again and again ends as one that was not, on ${engine.name}`, async (t) => {
    const lines = [
      ...Array.from({ length: 40 }, (_, n) =>
        JSON.stringify(importUpdate(`i${String(n).padStart(3, '0')}`, `00${n}`)),
      ),
      ...plainLines(UPDATES),
    ]
    const text = `${lines.join('\n')}\n`
    const file = join(newDirectory(t), 'history.ndjson')
    writeFileSync(file, text)
    assert.ok(statSync(file).size > 3_000_000)
    const target = await engine.newTarget(t)
    const args = [JSON.stringify(target), file]
    let stored = 0
    for (let round = 0; round < KILLS; round += 1) {
      // Every skipped update and every stored batch is a line.
      const told = await runUntil(t, args, stored + (round % 3))
      const last = told.findLast((line) => /^\d/.test(line))
      const [storedNow = 0, skipped = 0] = last?.split(' ').map(Number) ?? []
      assert.ok(skipped <= stored)
      const db = await openDb(target)
      const history = await openHistory({ db, cacheBytes: 1_000_000 })
      const held = history.view.updates + history.view.imports
      assert.ok(held >= stored + storedNow, 'what was told to be stored is there')
      assert.equal(held % 1000 === 0 || held === lines.length, true, 'only whole batches are there')
      assert.equal(
        await exportText(history),
        text
          .split('\n')
          .slice(0, held)
          .map((line) => `${line}\n`)
          .join(''),
      )
      await db.close()
      stored = held
    }
    const told = await runUntil(t, args, Number.POSITIVE_INFINITY)
    assert.equal(told.at(-1), `done ${lines.length - stored}`)
    const db = await openDb(target)
    t.after(() => db.close())
    const history = await openHistory({ db, cacheBytes: 1_000_000 })
    assert.equal(await exportText(history), text)
    assert.equal((await verifyHistory(history, { pool: newPool(t) })).checked, lines.length)
  })
})
