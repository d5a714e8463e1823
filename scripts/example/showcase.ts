import * as v from './values.ts'

const MAX_INT64 = 2n ** 63n - 1n
const MIN_INT64 = -(2n ** 63n)
const FIRST_MICROS = -62_135_596_800_000_000
const LAST_DATE = 2_932_896
const FIRST_DATE = -719_162

/** Every kind of value that a ledger knows, at its ordinary and at its awkward ends: one contract for each row. */
export function showcase(some: {
  contract: string
  party: string
  type: v.TypeName
}): [string, v.Value][] {
  const round = (number: number) => v.record({ number: v.int64(number) }, some.type)
  return [
    ['unit', v.unit],
    ['booleans', v.list(v.bool(true), v.bool(false))],
    [
      'integers, to the ends of 64 bits',
      v.list(
        v.int64(0),
        v.int64(-42),
        v.int64(2n ** 53n + 1n),
        v.int64(MAX_INT64),
        v.int64(MIN_INT64),
      ),
    ],
    [
      'decimals, tiny and huge',
      v.list(
        ...[
          '0.0000000000',
          '0.0000000001',
          '-0.0000000001',
          '0.0000009999',
          '0.0000010000',
          '0.0050000000',
          '9999999999999999999999999999.9999999999',
          '-9999999999999999999999999999.9999999999',
          '0.0000000000000000000000000000000000001',
          '99999999999999999999999999999999999999',
        ].map(v.numeric),
      ),
    ],
    ['empty text', v.text('')],
    ['text of many scripts', v.text('Grüße, 漢字, Ελληνικά, עברית, हिन्दी, e\u0301 and é')],
    ['text beyond the basic plane', v.text('😀 👩‍👩‍👧‍👦 𝒳𝓎 𐍈 🇨🇭')],
    [
      'text with quotes and control characters',
      v.text(
        '"quoted" \\ back\\slash / \b\f\n\r\t \u0000\u0001\u001f\u007f\u0085\u2028\u2029\ufeff',
      ),
    ],
    [
      'text that looks like something else',
      v.list(
        v.text('null'),
        v.text('{"int64":"1"}'),
        v.text('<a href="x">1 & 2</a>'),
        v.text("'; drop table updates; --"),
      ),
    ],
    ['party', v.party(some.party)],
    ['contract id', v.contractId(some.contract)],
    [
      'dates',
      v.list(
        v.date(0),
        v.date(19_986),
        v.date(-1),
        v.date(FIRST_DATE),
        v.date(LAST_DATE),
        v.date(19_782),
      ),
    ],
    [
      'times, also before 1970',
      v.list(
        v.timestamp(1_726_839_088_405_180),
        v.timestamp(1_726_839_088_405_000),
        v.timestamp(1_726_839_088_000_000),
        v.timestamp(0),
        v.timestamp(-1),
        v.timestamp(-1_000_000),
        v.timestamp(FIRST_MICROS),
      ),
    ],
    ['optional', v.list(v.none, v.some(v.text('')), v.some(v.text('here')))],
    ['optional of optional', v.list(v.none, v.some(v.none), v.some(v.some(v.int64(1))))],
    [
      'optional three deep',
      v.list(v.none, v.some(v.none), v.some(v.some(v.none)), v.some(v.some(v.some(v.unit)))),
    ],
    [
      'optional of empty things',
      v.record({
        list: v.some(v.list()),
        textMap: v.some(v.textMap([])),
        genMap: v.some(v.genMap([])),
        record: v.some(v.record({})),
        unit: v.some(v.unit),
      }),
    ],
    [
      'empty things',
      v.record({
        list: v.list(),
        textMap: v.textMap([]),
        genMap: v.genMap([]),
        record: v.record({}),
        text: v.text(''),
      }),
    ],
    ['list of lists', v.list(v.list(v.int64(1)), v.list(), v.list(v.int64(2), v.int64(3)))],
    [
      'text map',
      v.textMap([
        ['splice.lfdecentralizedtrust.org/reason', v.text('rent')],
        ['note', v.text('thank you')],
      ]),
    ],
    [
      'text map with awkward keys',
      v.textMap(
        [
          '',
          ' ',
          '10',
          '2',
          '-1',
          '__proto__',
          'constructor',
          'toString',
          '"',
          '\\',
          '\\u0041',
          'a/b',
          'a\u0000b',
          '\n',
          '😀',
          '\ufb33',
          'é',
          'e\u0301',
          'null',
        ].map((key, index) => [key, v.int64(index)]),
      ),
    ],
    ['map keyed by party', v.genMap([[v.party(some.party), v.numeric('-61.3199997000')]])],
    [
      'map keyed by records, in ledger order',
      v.genMap([
        [round(9), v.text('nine')],
        [round(1), v.text('one')],
      ]),
    ],
    [
      'map keyed by optionals and lists',
      v.genMap([
        [v.none, v.bool(false)],
        [v.some(v.date(1)), v.bool(true)],
        [v.list(v.text('k')), v.unit],
      ]),
    ],
    [
      'record with nothing in the middle and at its end',
      v.record({
        first: v.int64(1),
        middle: v.none,
        last: v.text('x'),
        end: v.none,
        veryEnd: v.none,
      }),
    ],
    ['record with its type named', round(7)],
    ['tuple', v.record({ _1: v.numeric('100.0000000000'), _2: v.numeric('0.0010000000') })],
    [
      'record with awkward labels',
      v.record({
        tag: v.text('not a variant'),
        value: v.unit,
        constructor: v.int64(1),
        "prime'": v.int64(2),
        snake_case: v.int64(3),
      }),
    ],
    [
      'variants',
      v.list(
        v.variant('Nothing', v.unit),
        v.variant('Just', v.int64(1)),
        v.variant('Pair', v.record({ left: v.unit, right: v.none })),
      ),
    ],
    [
      'variant in variant',
      v.variant('Outer', v.variant('Inner', v.some(v.variant('Innermost', v.list())))),
    ],
    ['enum', v.list(v.enumeration('Hearts'), v.enumeration('Spades'))],
    [
      'choice context of the token standard',
      v.record({
        values: v.textMap([
          ['amulet-rules', v.variant('AV_ContractId', v.contractId(some.contract))],
          ['expire-lock', v.variant('AV_Bool', v.bool(true))],
          [
            'limits',
            v.variant(
              'AV_List',
              v.list(
                v.variant('AV_Int', v.int64(-7)),
                v.variant('AV_Decimal', v.numeric('3.1957419000')),
              ),
            ),
          ],
          [
            'since',
            v.variant(
              'AV_Map',
              v.textMap([
                ['day', v.variant('AV_Date', v.date(19_986))],
                ['time', v.variant('AV_Time', v.timestamp(1_726_839_088_405_180))],
                ['for', v.variant('AV_RelTime', v.record({ microseconds: v.int64(600_000_000) }))],
              ]),
            ),
          ],
          ['who', v.variant('AV_Party', v.party(some.party))],
        ]),
      }),
    ],
  ]
}
