import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { plainValue } from './check-tree.ts'
import { HoconError, mergeInto, parseHocon, resolveHocon } from './hocon.ts'
import type { Place, Source } from './tree.ts'

function parse(text: string) {
  const source: Source = { name: 'X', kind: 'variable', text, secret: false }
  const origin: Place = { source, line: 1, column: 1, length: 1 }
  return parseHocon(source, origin)
}

function value(text: string, environment: Record<string, string> = {}): unknown {
  return plainValue(resolveHocon(parse(text), (name) => environment[name]).tree)
}

function refusal(text: string): HoconError {
  try {
    value(text)
  } catch (error) {
    assert.ok(error instanceof HoconError)
    return error
  }
  return assert.fail(`${text} should be refused`)
}

const ROWS: [string, unknown][] = [
  ['a = 1', { a: 1 }],
  ['a: "x"', { a: 'x' }],
  ['a.b.c = true', { a: { b: { c: true } } }],
  ['a { b = 1, c = 2 }', { a: { b: 1, c: 2 } }],
  ['{ a = 1 }', { a: 1 }],
  ['a = 1\nb = 2', { a: 1, b: 2 }],
  ['a { b = 1 }\na { c = 2 }', { a: { b: 1, c: 2 } }],
  ['a = { b = 1 }\na = 2', { a: 2 }],
  ['a = []', { a: [] }],
  ['a=[1, 2\n3]', { a: [1, 2, 3] }],
  ['a = [ { b = 1 }, { b = 2 } ]', { a: [{ b: 1 }, { b: 2 }] }],
  ['a += 1\na += 2', { a: [1, 2] }],
  ['a = [1]\na += 2', { a: [1, 2] }],
  ['a = 1\na = 2', { a: 2 }],
  ['"a.b" = 1', { 'a.b': 1 }],
  ['a."x::1220".c = 1', { a: { 'x::1220': { c: 1 } } }],
  ['a = 5 minutes', { a: '5 minutes' }],
  ['a = auth0|64b1', { a: 'auth0|64b1' }],
  ['a = b c // comment', { a: 'b c' }],
  ['# comment\na = 1 # more', { a: 1 }],
  ['a = """x "y" z"""', { a: 'x "y" z' }],
  ['a = "l\\n\\u0041"', { a: 'l\nA' }],
  ['a = null', { a: null }],
  ['a = 1,\n', { a: 1 }],
  ['', {}],
  ['a = { b = 1 } { c = 2 }', { a: { b: 1, c: 2 } }],
  ['a = x.y-z/w', { a: 'x.y-z/w' }],
  ['a = 007', { a: '007' }],
  ['a = 1\r\nb = 2\r\n', { a: 1, b: 2 }],
]

for (const [text, expected] of ROWS) {
  test(`HOCON ${JSON.stringify(text)} is read`, () => assert.deepEqual(value(text), expected))
}

for (const text of [
  'a {',
  'a }',
  'a',
  'a = ',
  'a = [1',
  'a = "x',
  'a = b@c',
  'a = $x',
  `a = \${x`,
  'include "f"',
  '= 1',
  'a = 1 ]',
  'a + 1',
  'a = """x',
  'a = [1 { b = 2 }',
  'a = "\\x"',
  'a..b = 1',
  '}',
]) {
  test(`HOCON ${JSON.stringify(text)} is refused with a place`, () => {
    const { place, message } = refusal(text)
    assert.ok(place.line === 1 && place.column >= 1 && message.length > 5)
  })
}

test('an open brace is told where it opens', () => {
  const { place } = refusal('a = 1\nb.c {\n  d = 5m')
  assert.deepEqual([place.line, place.column], [2, 5])
})

test('substitutions look into the tree, then into the environment', () => {
  assert.deepEqual(value(`a = \${b}\nb = 1`), { a: 1, b: 1 })
  assert.deepEqual(value(`a = \${X}`, { X: 'y' }), { a: 'y' })
  assert.deepEqual(value(`a = \${?X}\nb = 1`), { b: 1 })
  assert.deepEqual(value(`a = "http://"\${h}":1"\nh = x`), { a: 'http://x:1', h: 'x' })
  assert.deepEqual(value(`a = { b = 1 }\nc = \${a} { d = 2 }`), { a: { b: 1 }, c: { b: 1, d: 2 } })
})

test('a substitution of the value that is being set means the one before it', () => {
  assert.deepEqual(value(`a = [1]\na = \${a} [2]`), { a: [1, 2] })
  assert.deepEqual(value(`a = x\na = \${a}y\na = \${a}z`), { a: 'xyz' })
  assert.deepEqual(value(`a { b = 1 }\na = \${a} { c = 2 }`), { a: { b: 1, c: 2 } })
  assert.deepEqual(value(`a = \${?a}x`), { a: 'x' })
  assert.match(refusal(`a = \${a}`).message, /itself/)
  assert.match(refusal('a = 1\na += 2').message, /list/)
})

test('a list of one tree is added to by another', () => {
  const tree = parse('a = [1]\nb = [1]\nc = 1')
  mergeInto(tree, parse(`a += 2\na += 3\nb = \${b} [2]\nc += 1\nc = 2`))
  assert.deepEqual(plainValue(resolveHocon(tree, () => undefined).tree), {
    a: [1, 2, 3],
    b: [1, 2],
    c: 2,
  })
})

test('a key that is set very often is read', () => {
  const tree = parse('a = 0')
  mergeInto(tree, parse('a = 1\n'.repeat(5_000)))
  assert.deepEqual(plainValue(resolveHocon(tree, () => undefined).tree), { a: 1 })
  assert.match(refusal('a += 1\n'.repeat(5_000)).message, /without end/)
})

test('a required substitution that finds nothing is told by its name', () => {
  const { unresolved } = resolveHocon(parse(`a = \${MISSING.name}`), () => undefined)
  assert.deepEqual(
    unresolved.map(({ name }) => name),
    ['MISSING.name'],
  )
})

test('substitutions that refer to themselves, or multiply, are refused', () => {
  assert.match(refusal(`a = \${b}\nb = \${a}`).message, /itself/)
  const bomb = [
    'a0 = [1,2,3,4,5,6,7,8,9,10]',
    ...Array.from(
      { length: 12 },
      (_, i) => `a${i + 1} = [${Array(10).fill(`\${a${i}}`).join(',')}]`,
    ),
  ]
  assert.match(refusal(bomb.join('\n')).message, /without end/)
})

test('deep nesting is refused, not followed', () => {
  assert.match(refusal('a '.concat('{ a '.repeat(5000))).message, /deeper/)
  assert.match(refusal(`a = ${'['.repeat(5000)}`).message, /deeper/)
})

test('a later tree wins, object by object', () => {
  const tree = parse('a { b = 1, c = 1 }')
  mergeInto(tree, parse('a { c = 2, d = 2 }'))
  assert.deepEqual(plainValue(resolveHocon(tree, () => undefined).tree), {
    a: { b: 1, c: 2, d: 2 },
  })
})

test('every JSON object is HOCON', () => {
  const key = fc.string({ maxLength: 8 })
  const json = fc.dictionary(key, fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(json, (object) => {
      assert.deepEqual(value(JSON.stringify(object)), JSON.parse(JSON.stringify(object)))
    }),
  )
})

test('no text makes the parser throw anything but its own error', () => {
  const piece = fc.constantFrom(
    'a',
    '.',
    '=',
    '{',
    '}',
    '[',
    ']',
    '"',
    '"""',
    ',',
    '\n',
    ' ',
    `\${`,
    `\${?`,
    '}',
    '#',
    '//',
    '+=',
    ':',
    '1',
    '\\',
    '@',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      try {
        value(pieces.join(''))
      } catch (error) {
        assert.ok(error instanceof HoconError, String(error))
      }
    }),
    { numRuns: 2000 },
  )
})
