import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../../test/support/engines.ts'
import {
  exportText,
  importText,
  newPool,
  openTestHistory,
  pageText,
} from '../../test/support/histories.ts'
import {
  importUpdate,
  plainLines,
  transaction,
  unassignment,
} from '../../test/support/sample-items.ts'
import { ImportError } from './import-error.ts'
import { verifyHistory } from './verify.ts'

async function refusalOf(work: Promise<unknown>): Promise<ImportError> {
  try {
    await work
  } catch (error) {
    assert(error instanceof ImportError, `${error}`)
    return error
  }
  return assert.fail('the import was accepted')
}

forEachEngine((engine) => {
  test(`a bad line is refused with its number, its field and the reason, and nothing of its batch is stored, on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine, plainLines(3))
    const pool = newPool(t)
    const good = plainLines(5, { from: 10 })
    const cases: [line: string | Uint8Array, reason: RegExp][] = [
      ['{', /^Line 6: The line is not JSON/],
      [JSON.stringify(transaction({ update_id: '' })), /^Line 6: update_id must be a string of/],
      [
        JSON.stringify(unassignment({ record_time: 'noon' })),
        /^Line 6: record_time must be an ISO/,
      ],
      ['{"migration_id":1e+21,"events_by_id":{},"update_id":"a"}', /^Line 6: migration_id must be/],
      [Buffer.from([0x22, 0xc3, 0x28, 0x22]), /^Line 6: The line is not valid UTF-8\.$/],
      ['\u0000', /^Line 6: The line is not JSON/],
    ]
    for (const [line, reason] of cases) {
      const text = Buffer.concat([Buffer.from(`${good.join('\n')}\n`), Buffer.from(line)])
      const error = await refusalOf(importText(history, pool, text))
      assert.match(error.message, reason)
      assert.equal(error.line, 6)
      assert.equal(history.view.updates, 3)
    }
  })

  test(`a byte order mark, empty lines, Windows line ends and a missing last line end are no faults on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine)
    const [one, two] = plainLines(2)
    const result = await importText(history, newPool(t), `\ufeff${one}\r\n\n  \r\n${two}`)
    assert.deepEqual([result.stored, result.skipped], [2, 0])
    const none = await importText(history, newPool(t), '')
    assert.deepEqual([none.stored, none.skipped], [0, 0])
  })

  test(`stored updates are skipped, so that an import is simply run again, on ${engine.name}`, async (t) => {
    const lines = [
      JSON.stringify(importUpdate('i1', '00aa')),
      JSON.stringify(importUpdate('i2', '00ab')),
      ...plainLines(80),
    ]
    const history = await openTestHistory(t, engine, lines.slice(0, 40))
    const pool = newPool(t)
    const result = await importText(history, pool, `${lines.join('\n')}\n`)
    assert.deepEqual([result.stored, result.skipped], [42, 40])
    const again = await importText(history, pool, `${lines.join('\n')}\n`)
    assert.deepEqual([again.stored, again.skipped], [0, 82])
    const middle = await importText(history, pool, `${lines.slice(20, 30).join('\n')}\n`)
    assert.deepEqual([middle.stored, middle.skipped], [0, 10])
    const twice = plainLines(2, { from: 90 })
    const repeated = await importText(
      history,
      pool,
      [twice[0], twice[0], twice[1], twice[0]].join('\n'),
    )
    assert.deepEqual([repeated.stored, repeated.skipped], [2, 2])
  })

  test(`an update that differs from the stored one shows both on ${engine.name}`, async (t) => {
    const lines = [JSON.stringify(importUpdate('i1', '00aa')), ...plainLines(30)]
    const history = await openTestHistory(t, engine, lines)
    for (const [n, line] of [lines[0], lines[3], lines[29]].entries()) {
      const other = (line as string).replace('"workflow_id":"', '"workflow_id":"another')
      const error = await refusalOf(importText(history, newPool(t), `${other}\n`))
      assert.match(
        error.message,
        /^Line 1: update \S+ at 1,\S+Z differs from what is stored there\./,
      )
      const workflow = n === 0 ? 'canton-network-acs-import' : ''
      assert.match(error.message, new RegExp(`stored: .*"workflow_id":"${workflow}"`))
      assert.match(error.message, new RegExp(`given: .*"workflow_id":"another${workflow}"`))
    }
    assert.equal(history.view.updates, 30)
  })

  test(`an update before the end that is not stored is out of order, with a hint, on ${engine.name}`, async (t) => {
    const lines = plainLines(30)
    const history = await openTestHistory(t, engine, lines.toSpliced(10, 1))
    const pool = newPool(t)
    const error = await refusalOf(importText(history, pool, lines.join('\n')))
    assert.match(error.message, /^Line 11: update \S+ at 1,\S+ is out of order: .*--sort/)
    const early = JSON.stringify(
      transaction({ migration_id: -5, record_time: '2024-01-01T00:00:00Z' }),
    )
    assert.match((await refusalOf(importText(history, pool, early))).message, /out of order/)
    const late = JSON.stringify(importUpdate('i', '00aa'))
    assert.match((await refusalOf(importText(history, pool, late))).message, /out of order/)
  })

  test(`more import updates than a batch holds are imported on ${engine.name}`, async (t) => {
    const lines = Array.from({ length: 2100 }, (_, n) => {
      const name = String(n).padStart(5, '0')
      return JSON.stringify(importUpdate(`i${name}`, `00${name}`))
    })
    const history = await openTestHistory(t, engine)
    const pool = newPool(t)
    const text = `${[...lines, ...plainLines(30)].join('\n')}\n`
    assert.deepEqual((await importText(history, pool, text)).stored, 2130)
    assert.equal(history.view.imports, 2100)
    assert.equal((await importText(history, pool, text)).skipped, 2130)
    assert.equal(await exportText(history), text)
    assert.equal((await verifyHistory(history, { pool })).checked, 2130)
    const page = await pageText(history, { version: 0, pageSize: 2105 })
    assert.equal(page.match(/"workflow_id":"canton-network-acs-import"/g)?.length, 2100)
  })

  test(`two import updates of one contract are refused on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine)
    const lines = ['i1', 'i2'].map((id) => JSON.stringify(importUpdate(id, '00aa')))
    const error = await refusalOf(importText(history, newPool(t), lines.join('\n')))
    assert.match(error.message, /i2.* 00aa/)
    assert.equal(history.view.imports, 0)
  })

  test(`progress is told, and ends with the whole, on ${engine.name}`, async (t) => {
    const history = await openTestHistory(t, engine)
    const { importLines } = await import('./import.ts')
    const reports: number[] = []
    await importLines(history, {
      pool: newPool(t, 2),
      source: (async function* () {
        for (const line of plainLines(2500)) yield Buffer.from(`${line}\n`)
      })(),
      onProgress: ({ stored, skipped }) => reports.push(stored + skipped),
    })
    assert.deepEqual(reports, [1000, 2000, 2500])
  })
})
