import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  parseAppDuration,
  parseChartDuration,
  parseNonNegativeDuration,
  parseTimeLimit,
  parseWholeSecondsDuration,
  printDuration,
} from './duration.ts'
import {
  bytes,
  count,
  decimal,
  httpUrl,
  type Kind,
  ledgerDecimal,
  logLevel,
  migrationId,
  nodeIdentifier,
  partyHint,
  partyId,
  port,
  quantity,
  sqlName,
  tlsVersion,
} from './kinds.ts'

const NAMESPACE = `1220${'a1b2c3d4'.repeat(8)}`

type Row = { kind: Kind; good: string[]; bad: string[] }

const ROWS: Record<string, Row> = {
  url: {
    kind: httpUrl,
    good: [
      'https://sv.example.net',
      'http://h',
      'https://h:8443/p?q#f',
      'https://[::1]:80/',
      'http://localhost:5012/api/scan',
      'https://h/',
    ],
    bad: [
      '',
      'sv.example.net',
      'sv.example.net:443',
      'ftp://h',
      'https://',
      'http:/x',
      'https://:443',
      'https://a b',
      'https://h:99999',
      'https://u:p@h',
      '<TRUSTED_SCAN_URL>',
      'TRUSTED_SCAN_URL',
      '//h',
      'https://h h/',
      'javascript:alert(1)',
      ' https://h',
    ],
  },
  'party id': {
    kind: partyId,
    good: [
      `alice::${NAMESPACE}`,
      'bob::1220abcd',
      'a b_c-d:e::x',
      `${'a'.repeat(185)}::${'b'.repeat(68)}`,
      'a:::b',
    ],
    bad: [
      'alice',
      '::x',
      'x::',
      `PAR::alice::${NAMESPACE}`,
      `${'a'.repeat(186)}::b`,
      `a::${'b'.repeat(69)}`,
      'a.b::c',
      'a::b/c',
      '',
      '::',
      'ä::b',
    ],
  },
  'party hint': {
    kind: partyHint,
    good: ['acme-validator-1', 'a-b-0', 'acme_labs-node_ops-12', 'A-B-007'],
    bad: [
      '',
      'acme',
      'acme-validator',
      'acme-validator-one',
      'acme-val-idator-1',
      'acme-validator-',
      '-b-1',
      'a--1',
      'a b-c-1',
      'acme-validator-1::1220ab',
      'acme-validator-1 ',
    ],
  },
  identifier: {
    kind: nodeIdentifier,
    good: ['acme', 'acme-validator-1', 'a:b', 'a b', 'a'.repeat(185)],
    bad: ['', 'a::b', 'a'.repeat(186), 'a/b', 'a.b'],
  },
  'migration id': {
    kind: migrationId,
    good: ['0', '3', '9223372036854775807', '007'],
    bad: ['', 'v3', '-1', '1.5', '3 ', 'three', '9223372036854775808', '0x1', '１'],
  },
  port: { kind: port, good: ['0', '5432', '65535'], bad: ['-1', '65536', '70000', 'x', '', '1.5'] },
  count: {
    kind: count,
    good: ['0', '20000', '20000.0'],
    bad: ['-5', '1500.5', 'many', '', '1e400', '0x4E20', '0b1', ' 5', '1_000'],
  },
  decimal: {
    kind: decimal,
    good: ['0', '1000', '0.1', '1e3', '100.0000000001'],
    bad: ['-5', 'lots', '', '1,5', 'NaN', 'Infinity', '.5', '1e9999'],
  },
  'ledger decimal': {
    kind: ledgerDecimal,
    good: ['0', '16.67', '60', '0.0000000001'],
    bad: ['-1', '', 'free', '1e3', '.5', '0.00000000001', '1'.repeat(29)],
  },
  quantity: {
    kind: quantity,
    good: ['50Gi', '2Ti', '2800Gi', '500G', '53687091200', '1.5Ti', '1e9', '100m'],
    bad: ['50GB', '50gi', '50 Gi', 'fifty', '', 'Gi', '-1Gi'],
  },
  'database name': {
    kind: sqlName,
    good: ['participant_3', 'cantonnet', '_x', 'a-b'],
    bad: ['', '3participant', 'a b', "x'; drop", 'x'.repeat(64)],
  },
  'TLS version': {
    kind: tlsVersion,
    good: ['TLSv1.2', 'TLSv1.3'],
    bad: ['TLSv1.1', 'TLSv1', 'TLS1.3', 'tlsv1.3', '', '1.3', 'SSLv3'],
  },
  'log level': { kind: logLevel, good: ['info', 'DEBUG', 'Warn'], bad: ['verbose', '', 'warning'] },
  bytes: {
    kind: bytes,
    good: ['0', '64Mi', '1G', '67108864'],
    bad: ['64MB', '-1', '1.5Gi', '', '64 Mi'],
  },
}

for (const [name, { kind, good, bad }] of Object.entries(ROWS)) {
  test(`the kind ${name} takes what fits and refuses its neighbours with a reason`, () => {
    for (const text of good) assert.ok('value' in kind.fromText(text), `${text} should be taken`)
    for (const text of bad) {
      const reading = kind.fromText(text)
      assert.ok('reason' in reading && reading.reason.length > 5, `${text} should be refused`)
    }
  })
}

test('the schema pattern of a text kind says the same as its reader', () => {
  for (const { kind, good, bad } of Object.values(ROWS)) {
    const { pattern, format, maxLength, type } = kind.schema as Record<string, unknown>
    if (typeof pattern !== 'string' || format !== undefined || type !== 'string') continue
    const fits = (text: string) =>
      new RegExp(pattern, 'u').test(text) && text.length <= Number(maxLength ?? Infinity)
    for (const text of good) assert.ok(fits(text), `${kind.name}: ${text}`)
    for (const text of bad) assert.ok(!fits(text), `${kind.name}: ${text}`)
  }
})

test('no schema pattern uses what the validators of cluster tools do not know', () => {
  for (const { kind } of Object.values(ROWS)) {
    assert.doesNotMatch(String((kind.schema as Record<string, unknown>).pattern ?? ''), /\(\?[!=<]/)
  }
})

test('decimals become plain texts without losing a digit', () => {
  const value = (text: string) => {
    const reading = decimal.fromText(text)
    assert.ok('value' in reading)
    return reading.value
  }
  assert.equal(value('1e3'), '1000')
  assert.equal(value('1.25e1'), '12.5')
  assert.equal(value('000.10'), '0.1')
  assert.equal(
    value('123456789012345678901234567890.0000000001'),
    '123456789012345678901234567890.0000000001',
  )
})

test('chart durations are digits followed by s, m or h', () => {
  for (const [text, ms] of [
    ['1m', 60_000],
    ['30s', 30_000],
    ['2h', 7_200_000],
    ['0s', 0],
  ] as const) {
    assert.deepEqual(parseChartDuration(text), { value: ms })
  }
  for (const text of [
    '1d',
    '60',
    '1 m',
    '1.5m',
    '1M',
    'PT1M',
    '60000ms',
    '-1m',
    '',
    'm',
    '1m ',
    '99999999999999999h',
  ]) {
    assert.ok('reason' in parseChartDuration(text), text)
  }
})

test('application durations take every unit of their grammar, in blanks and fractions', () => {
  const rows: [string, bigint][] = [
    ['5m', 300_000_000_000n],
    ['25 hours', 90_000_000_000_000n],
    ['1441m', 86_460_000_000_000n],
    ['36.5h', 131_400_000_000_000n],
    ['1d', 86_400_000_000_000n],
    ['2 days', 172_800_000_000_000n],
    ['1.5e3 ms', 1_500_000_000n],
    ['.5s', 500_000_000n],
    ['7µs', 7000n],
    ['3 nanos', 3n],
    ['-1s', -1_000_000_000n],
    ['+1 sec', 1_000_000_000n],
    ['1 h r', 3_600_000_000_000n],
  ]
  for (const [text, ns] of rows) assert.deepEqual(parseAppDuration(text), { ns }, text)
  for (const text of [
    '5',
    '0',
    '',
    '1h30m',
    'PT5M',
    '48H',
    '5us',
    'two days',
    '1 fortnight',
    'm',
    '--1s',
    '1e99s',
    '1constructor',
  ]) {
    assert.ok('reason' in parseAppDuration(text), text)
  }
})

test('each target of a duration has its own bounds', () => {
  assert.ok('reason' in parseNonNegativeDuration('-1s'))
  assert.ok('reason' in parseNonNegativeDuration('Inf'))
  assert.deepEqual(parseNonNegativeDuration('0s'), { value: 0 })
  assert.deepEqual(parseNonNegativeDuration('1ns'), { value: 0.000001 })
  for (const text of ['0s', '172800500ms', 'Inf', '-1h', '0.5s'])
    assert.ok('reason' in parseWholeSecondsDuration(text), text)
  assert.deepEqual(parseWholeSecondsDuration('36.5h'), { value: 131_400_000 })
  assert.deepEqual(parseTimeLimit('Inf'), { value: Infinity })
  assert.ok('reason' in parseTimeLimit('-Inf'))
})

test('a duration that is printed reads back as the same', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 ** 9 }),
      fc.constantFrom(1000, 60_000, 3_600_000, 86_400_000),
      (amount, unit) => {
        const ms = Math.min(amount, 10_000) * unit
        assert.deepEqual(parseWholeSecondsDuration(printDuration(ms)), { value: ms })
      },
    ),
  )
})

test('a party id is taken exactly when its two sides keep the alphabet and the lengths', () => {
  const side = (max: number) =>
    fc
      .stringMatching(/^[A-Za-z0-9_ -]+$/)
      .map((text) => text.slice(0, max))
      .filter((text) => text !== '')
  fc.assert(
    fc.property(side(185), side(68), (left, right) => {
      assert.ok('value' in partyId.fromText(`${left}::${right}`))
      assert.ok('reason' in partyId.fromText(`PAR::${left}::${right}`))
      assert.ok('reason' in partyId.fromText(left))
    }),
  )
})

test('no text makes a kind throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      for (const { kind } of Object.values(ROWS)) kind.fromText(text)
      parseAppDuration(text)
      parseChartDuration(text)
    }),
  )
})
