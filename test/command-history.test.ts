import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { type CommandOptions, PROGRAM, ROOT, runCommand, startCommand } from './support/command.ts'
import { newDirectory, startTestNode } from './support/node.ts'
import { plainLines } from './support/sample-items.ts'

const run = promisify(execFile)
const EXAMPLE = join(ROOT, 'examples/history.ndjson')
const TEXT = readFileSync(EXAMPLE)
const EXAMPLE_UPDATES = 315

/** The example, byte for byte; the message tells the line, since the whole would fill the screen. */
function assertSameLines(found: Uint8Array | string): void {
  const [one, other] = [Buffer.from(found).toString().split('\n'), TEXT.toString().split('\n')]
  assert.equal(one.length, other.length)
  const differing = one.findIndex((line, n) => line !== other[n])
  assert.equal(differing, -1, `line ${differing + 1} differs`)
}

async function succeed(
  t: TestContext,
  args: string[],
  options: CommandOptions = {},
): Promise<string> {
  const outcome = await runCommand(t, args, options)
  assert.equal(outcome.code, 0, `${args.join(' ')}: ${outcome.stderr}`)
  return outcome.stdout
}

/** One sentence on standard error and no stack. */
async function fail(t: TestContext, args: string[], says: RegExp, options: CommandOptions = {}) {
  const outcome = await runCommand(t, args, options)
  assert.equal(outcome.code, 1, `${args.join(' ')}: ${outcome.stdout}`)
  assert.match(outcome.stderr, says)
  assert.match(outcome.stderr, /^annals: /)
  assert.doesNotMatch(outcome.stderr, /\n\s+at /)
  return outcome
}

test('a file is imported whatever its compression, also from a pipe, and exported as it was', async (t) => {
  const directory = newDirectory(t)
  const third = TEXT.indexOf('\n', TEXT.length / 3) + 1
  const frames = [TEXT.subarray(0, third), TEXT.subarray(third)]
  const files: Record<string, Uint8Array> = {
    plain: TEXT,
    gzip: zlib.gzipSync(TEXT),
    'gzip of two members': Buffer.concat(frames.map((part) => zlib.gzipSync(part))),
    zstd: zlib.zstdCompressSync(TEXT),
    'zstd of two frames': Buffer.concat(frames.map((part) => zlib.zstdCompressSync(part))),
  }
  const data = join(directory, 'data')
  for (const [name, bytes] of Object.entries(files)) {
    const file = join(directory, name)
    writeFileSync(file, bytes)
    // Those after the first hold what is stored already, or they would be refused.
    const expected = name === 'plain' ? /^Stored 315 updates\. The/ : /^Stored 0 updates\. 315 were/
    assert.match(await succeed(t, ['import', '--data', data, file]), expected)
  }
  assertSameLines(await succeed(t, ['export', '--data', data]))
  for (const name of ['plain', 'zstd of two frames']) {
    const input = files[name] as Uint8Array
    assert.match(
      await succeed(t, ['import', '--data', data, '-'], { input }),
      /^Stored 0 .* 315 were/,
    )
  }
})

test('several files are one input, and an import that is repeated stores nothing', async (t) => {
  const directory = newDirectory(t)
  const cut = TEXT.indexOf('\n', TEXT.length / 2)
  // The first without an end of its last line.
  writeFileSync(join(directory, '1'), TEXT.subarray(0, cut))
  writeFileSync(join(directory, '2'), zlib.gzipSync(TEXT.subarray(cut + 1)))
  const args = ['import', '--data', 'data', '1', '2']
  assert.match(await succeed(t, args, { cwd: directory }), /^Stored 315 updates\. The history/)
  assert.match(
    await succeed(t, args, { cwd: directory }),
    /^Stored 0 updates\. 315 were there already\./,
  )
})

test('--json reports lines of JSON, the last of them the result', async (t) => {
  const data = join(newDirectory(t), 'data')
  const linesOf = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  const imported = linesOf(await succeed(t, ['import', '--json', '--data', data, EXAMPLE]))
  assert.deepEqual(imported.at(-1), {
    event: 'imported',
    stored: EXAMPLE_UPDATES,
    skipped: 0,
    last: { migrationId: '1', recordTime: imported.at(-1).last.recordTime },
  })
  assert.ok(
    imported.slice(0, -1).every((line) => line.event === 'progress' && line.command === 'import'),
  )
  const verified = linesOf(await succeed(t, ['verify', '--json', '--data', data]))
  assert.deepEqual(verified.at(-1), { event: 'verified', updates: EXAMPLE_UPDATES })
})

test('input out of order is refused with a hint, and sorted with --sort', async (t) => {
  const directory = newDirectory(t)
  const lines = TEXT.toString().trimEnd().split('\n')
  const file = join(directory, 'mixed.ndjson')
  writeFileSync(file, lines.map((_, n) => lines[(n * 2) % lines.length]).join('\n'))
  await fail(
    t,
    ['import', '--data', join(directory, 'a'), file],
    /Line \d+: .*out of order.*--sort/,
  )
  const sorted = join(directory, 'b')
  assert.match(
    await succeed(t, ['import', '--sort', '--data', sorted, file]),
    /^Stored 315 updates/,
  )
  assertSameLines(await succeed(t, ['export', '--data', sorted]))
  assert.deepEqual(
    readdirSync(sorted).filter((name) => name.startsWith('sort-')),
    [],
  )
})

test('what cannot be imported is told in a sentence', async (t) => {
  const directory = newDirectory(t)
  const file = (name: string, bytes: Uint8Array | string) => {
    writeFileSync(join(directory, name), bytes)
    return join(directory, name)
  }
  const data = ['--data', join(directory, 'data')]
  const half = (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)
  const cases: [path: string, says: RegExp][] = [
    [join(directory, 'none'), /none does not exist/],
    [directory, /is a directory; name the files in it/],
    [
      file('bad', `${plainLines(2).join('\n')}\n{"update_id":5}\n`),
      /Line 3: .*\n0 updates are stored; mend/,
    ],
    [file('cut.gz', half(zlib.gzipSync(TEXT))), /cut\.gz is damaged: unexpected end of file/],
    [file('cut.zst', half(zlib.zstdCompressSync(TEXT))), /cut\.zst is damaged: /],
    [
      file('noise.zst', Buffer.concat([zlib.zstdCompressSync('{}\n'), Buffer.from('noise')])),
      /noise\.zst is damaged/,
    ],
    [file('binary', Buffer.from([0xff, 0xfe, 0, 1])), /Line 1: The line is not valid UTF-8/],
  ]
  for (const [path, says] of cases) await fail(t, ['import', ...data, path], says)
  await fail(t, ['export', '--data', join(directory, 'nothing')], /There is no history in .*--data/)
  await fail(t, ['verify', '--data', join(directory, 'nothing')], /There is no history in .*--data/)
})

test('an export is compressed by the name of its file, and has a range', async (t) => {
  const directory = newDirectory(t)
  const data = join(directory, 'data')
  await succeed(t, ['import', '--data', data, EXAMPLE])
  const unpack: Record<string, (bytes: Buffer) => Buffer> = {
    '.ndjson': (bytes) => bytes,
    '.ndjson.gz': (bytes) => zlib.gunzipSync(bytes),
    '.ndjson.zst': (bytes) => zlib.zstdDecompressSync(bytes),
  }
  for (const [ending, read] of Object.entries(unpack)) {
    const file = join(directory, `out${ending}`)
    const told = await succeed(t, ['export', '--data', data, '-o', file])
    assert.equal(told, `Wrote 315 updates to ${file}.\n`)
    assertSameLines(read(readFileSync(file)))
  }
  const second = await succeed(t, ['export', '--data', data, '--from', '1,0001-01-01T00:00:00Z'])
  const first = await succeed(t, ['export', '--data', data, '--to', '1,0001-01-01T00:00:00Z'])
  assert.ok(first.length > 0 && second.length > 0)
  assertSameLines(first + second)
  await fail(t, ['export', '--data', data, '-o', join(directory, 'no/where')], /cannot be written/)
  for (const position of ['1', '1,yesterday']) {
    const outcome = await runCommand(t, ['export', '--data', data, '--from', position])
    assert.equal(outcome.code, 2)
    assert.match(outcome.stderr, /A position is a migration id and a time, such as/)
  }
})

test('a reader that has seen enough of an export ends it quietly', async (t) => {
  const data = join(newDirectory(t), 'data')
  await succeed(t, ['import', '--data', data, EXAMPLE])
  const script = `"$0" "$1" export --data "$2" | head -n 1; echo "$?"`
  const { stdout, stderr } = await run('/bin/sh', ['-c', script, process.execPath, PROGRAM, data])
  assert.equal(stderr, '')
  assert.equal(stdout.split('\n')[0], TEXT.toString().split('\n')[0])
})

test('verify tells a fault in a sentence and by its exit code', async (t) => {
  const directory = newDirectory(t)
  const sound = join(directory, 'sound')
  await succeed(t, ['import', '--data', sound, EXAMPLE])
  assert.match(
    await succeed(t, ['verify', '--data', sound]),
    /^The history is sound: 315 updates up to 1,/,
  )
  const damages: [sql: string, says: RegExp][] = [
    ['update frame set checksum = checksum + 1 where number = 3', /Frame 3 \(updates 75 to 99\)/],
    ['update history set frames = frames + 1', /The stored history is damaged: it says/],
  ]
  for (const [n, [sql, says]] of damages.entries()) {
    const data = join(directory, `damaged-${n}`)
    cpSync(sound, data, { recursive: true })
    const db = new DatabaseSync(join(data, 'app.sqlite'))
    db.exec(sql)
    db.close()
    const told = await runCommand(t, ['verify', '--data', data])
    assert.equal(told.code, 1)
    assert.match(told.stderr, says)
    assert.doesNotMatch(told.stderr, /\n\s+at /)
    const json = await runCommand(t, ['verify', '--json', '--data', data])
    assert.equal(json.code, 1)
    const last = JSON.parse(json.stdout.trimEnd().split('\n').at(-1) as string)
    assert.equal(last.event, 'fault')
    assert.match(last.message, says)
  }
})

test('an import that is killed is run again to the same end', async (t) => {
  const directory = newDirectory(t)
  const lines = plainLines(20_000)
  const file = join(directory, 'history.ndjson')
  writeFileSync(file, `${lines.join('\n')}\n`)
  const data = ['--data', join(directory, 'data')]
  for (let round = 0; round < 3; round += 1) {
    const child = startCommand(t, ['import', '--json', ...data, file])
    const gone = once(child, 'exit')
    // The first line comes with the first batch.
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    setTimeout(() => child.kill('SIGKILL'), Math.random() * 80)
    await gone
    await succeed(t, ['verify', ...data])
  }
  await succeed(t, ['import', ...data, file])
  const exported = await succeed(t, ['export', ...data])
  assert.ok(exported === readFileSync(file, 'utf8'))
})

test('a full disk is told in a sentence and leaves a sound history', async (t) => {
  const directory = newDirectory(t)
  const file = join(directory, 'history.ndjson')
  writeFileSync(file, `${plainLines(30_000).join('\n')}\n`)
  const limited = { through: ['/bin/sh', '-c', 'ulimit -f 4000; exec "$@"', 'sh'] }
  const data = ['--data', join(directory, 'data')]
  const sentence = /^annals: The disk is full or does not work \(.*\)\. .*make room.*\n$/
  await fail(t, ['import', ...data, file], sentence, limited)
  assert.match(await succeed(t, ['verify', ...data]), /The history is sound/)
  await fail(t, ['import', '--sort', '--data', join(directory, 'sorted'), file], sentence, limited)
  assert.match(await succeed(t, ['import', ...data, file]), /The history ends at/)
  await fail(t, ['export', ...data, '-o', join(directory, 'out')], sentence, limited)
})

test('every command explains itself with examples', async (t) => {
  for (const command of [[], ['start'], ['import'], ['export'], ['verify']]) {
    const help = await succeed(t, [...command, '--help'])
    assert.match(help, /Usage: annals/)
    assert.match(help, /Examples?:\n {2}annals /, command[0])
  }
  for (const args of [['nonsense'], ['import'], ['verify', '--nonsense']]) {
    const outcome = await runCommand(t, args)
    assert.equal(outcome.code, 2, args.join(' '))
    assert.match(outcome.stderr, /error: /)
  }
})

test('the examples of the help run as they stand', async (t) => {
  const directory = newDirectory(t)
  cpSync(join(ROOT, 'examples'), join(directory, 'examples'), { recursive: true })
  writeFileSync(join(directory, 'part-1.gz'), zlib.gzipSync(TEXT))
  cpSync(EXAMPLE, join(directory, 'history.ndjson'))
  writeFileSync(join(directory, 'history.ndjson.zst'), zlib.zstdCompressSync(TEXT))
  const names = ['import', 'export', 'verify']
  const examples: string[] = []
  for (const name of names) {
    const [, block = ''] = /Examples?:\n([\s\S]*)/.exec(await succeed(t, [name, '--help'])) ?? []
    examples.push(
      ...block
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line.includes('annals ')),
    )
  }
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  examples.push(...(readme.match(/^npx annals (import|verify|export) .*$/gm) ?? []))
  assert.ok(examples.length >= 6, examples.join('\n'))
  // The examples assume a history in the directories that they name.
  await succeed(t, ['import', EXAMPLE], { cwd: directory })
  await succeed(t, ['import', '--data', './my-data', EXAMPLE], { cwd: directory })
  const { urls } = await startTestNode(t, { lines: TEXT.toString().trim().split('\n') })
  for (const example of new Set(examples.map((line) => line.replace(/^npx /, '')))) {
    if (/ (-f|--values|-p) /.test(example) || example.includes('/var/')) continue
    const script = example
      .replaceAll(/\bannals (?=import|export|verify)/g, `"${process.execPath}" "${PROGRAM}" `)
      .replaceAll(/https:\/\/scan\.\S+/g, urls.scan)
    await assert.doesNotReject(
      run('/bin/sh', ['-c', script], { cwd: directory, maxBuffer: 2 ** 26 }),
      example,
    )
  }
})
