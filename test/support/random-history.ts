import fc from 'fast-check'
import {
  type Draft,
  finishHistory,
  type Node,
  type Position,
  type RandomUpdate,
  SYNCHRONIZERS,
} from './draft-items.ts'
import {
  identifier,
  oddText,
  partyId,
  recordArbitrary,
  sha256,
  valueArbitrary,
} from './random-values.ts'

// Small, odd, valid histories: lossless items with labels in canonical form, without `offset`, in order.

export type HistoryOptions = { maxUpdates: number }

/** Above the time that marks import updates. */
const FIRST_MICROS = -62_135_596_800_000_000n + 1n
const LAST_MICROS = 253_402_300_799_999_999n
const INT64_MAX = 2n ** 63n - 1n

const MIGRATION_IDS = [
  0n,
  1n,
  2n,
  10n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  INT64_MAX - 1n,
  INT64_MAX,
]
/** Few enough that migrations often share them. */
const COMMON_MICROS = [
  FIRST_MICROS,
  -1n,
  0n,
  1n,
  1_726_839_088_000_000n,
  1_726_839_088_400_000n,
  1_726_839_088_405_000n,
  1_726_839_088_405_180n,
  1_726_839_088_405_181n,
  LAST_MICROS,
]
const CHILDREN_MAX = 3
const ROOTS_MAX = 3
const TREE_DEPTH_MAX = 3

export function historyArbitrary({ maxUpdates }: HistoryOptions): fc.Arbitrary<RandomUpdate[]> {
  const migrationId = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...MIGRATION_IDS) },
    { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: INT64_MAX }) },
  )
  const position: fc.Arbitrary<Position> = fc.record({ migrationId, micros })
  return fc
    .uniqueArray(fc.tuple(position, draft), {
      maxLength: maxUpdates,
      size: 'max',
      selector: ([{ migrationId, micros }]) => `${migrationId} ${micros}`,
    })
    .map((drafts) =>
      finishHistory(drafts.toSorted(([one], [other]) => comparePositions(one, other))),
    )
}

const micros = fc.oneof(
  fc.constantFrom(...COMMON_MICROS),
  fc.bigInt({ min: FIRST_MICROS, max: LAST_MICROS }),
)
const parties = (minLength: number) => fc.uniqueArray(partyId, { minLength, maxLength: 3 })
const typeId = fc
  .tuple(fc.nat(3), fc.constantFrom('Splice.Amulet', 'Main', 'A.B.C'), identifier)
  .map(([number, module, entity]) => `${sha256(`package ${number}`)}:${module}:${entity}`)

const { node } = fc.letrec<{ node: Node }>((tie) => {
  const exercise = fc.record({
    choice: identifier,
    consuming: fc.boolean(),
    argument: fc.oneof(recordArbitrary, valueArbitrary),
    result: valueArbitrary,
    actors: parties(1),
    interfaceId: fc.option(typeId, { nil: undefined }),
    children: fc.array(tie('node'), { maxLength: CHILDREN_MAX }),
  })
  const create = fc.record({ create: recordArbitrary })
  return {
    node: fc.record({
      target: fc.option(fc.nat(1000), { nil: undefined }),
      template: typeId,
      packageName: fc.oneof(fc.constantFrom('', 'splice-amulet'), oddText),
      signatories: parties(1),
      observers: parties(0),
      body: fc.oneof(
        { maxDepth: TREE_DEPTH_MAX, depthSize: 'small' },
        create,
        exercise,
      ) as fc.Arbitrary<Node['body']>,
    }),
  }
})

const draft: fc.Arbitrary<Draft> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('transaction' as const),
      workflow: fc.oneof(fc.constant(''), oddText),
      synchronizer: fc.constantFrom(...SYNCHRONIZERS),
      effective: micros,
      roots: fc.oneof(
        { weight: 1, arbitrary: fc.constant<Node[]>([]) },
        { weight: 20, arbitrary: fc.array(node, { minLength: 1, maxLength: ROOTS_MAX }) },
      ),
      external: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('unassign' as const, 'assign' as const),
      submitter: partyId,
      counter: fc.oneof(
        fc.constantFrom(1n, 2n, 2n ** 53n + 1n, INT64_MAX),
        fc.bigInt({ min: 1n, max: INT64_MAX }),
      ),
      homeward: fc.boolean(),
      created: node,
      createdAt: micros,
    }),
  },
)

function comparePositions(one: Position, other: Position): number {
  if (one.migrationId !== other.migrationId) return one.migrationId < other.migrationId ? -1 : 1
  if (one.micros !== other.micros) return one.micros < other.micros ? -1 : 1
  return 0
}
