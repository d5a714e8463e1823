import { block, freeList, freeMap, type Key, VALUES_KEYS, type ValuesFile } from './keys.ts'
import type { JsonSchema } from './kinds.ts'
import { isLeaf, type Shape, shapeOf } from './shape.ts'

/**
 * The table as a JSON Schema, for editors and for Helm. It says what one file can say about itself;
 * what holds between files, variables and secrets is said by `annals check` alone.
 */
export function schemaOf(file: ValuesFile): JsonSchema {
  const shape = shapeOf(VALUES_KEYS[file])
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `Annals: ${file} values`,
    description: 'Generated from the table of keys; see docs/configuration.md.',
    ...objectSchema(shape),
    ...(file === 'validator' ? { allOf: VALIDATOR_CONDITIONS } : {}),
  }
}

/** Columns of the repository's formatter, so that generated files need no second pass. */
const LINE_WIDTH = 100

/** Indented JSON in which lists of words stand on one line where they fit. */
export function printSchema(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (Array.isArray(value)) {
    const flat = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`
    if (
      value.every((item) => typeof item !== 'object') &&
      indent.length + flat.length < LINE_WIDTH - 30
    )
      return flat
    return `[\n${value.map((item) => `${deeper}${printSchema(item, deeper)}`).join(',\n')}\n${indent}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([name, item]) => `${deeper}${JSON.stringify(name)}: ${printSchema(item, deeper)}`,
  )
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n${indent}}`
}

function schemaFor(shape: Shape): JsonSchema {
  const key = shape.key
  const described = key === undefined ? {} : { description: describe(key) }
  const kind = key?.kind
  if (kind === freeMap || kind === freeList) return { ...described, ...kind.schema }
  if (shape.item !== undefined) {
    const item = shape.item
    const items = isLeaf(item) ? { ...item.key?.kind.schema } : objectSchema(item)
    const text = item.key === undefined ? described : { description: describe(item.key) }
    return { ...text, type: 'array', items }
  }
  if (!isLeaf(shape) || kind === block) return { ...described, ...objectSchema(shape) }
  return { ...described, ...kind?.schema }
}

function objectSchema(shape: Shape): JsonSchema {
  const required = [...shape.members]
    .filter(([, member]) => (member.key ?? member.item?.key)?.required === 'block')
    .map(([name]) => name)
  const keyed = shape.keyed
  return {
    type: 'object',
    ...(shape.members.size === 0
      ? {}
      : {
          properties: Object.fromEntries(
            [...shape.members].map(([name, member]) => [name, schemaFor(member)]),
          ),
        }),
    ...(required.length === 0 ? {} : { required }),
    ...(keyed === undefined
      ? { additionalProperties: false }
      : { propertyNames: keyed.key?.kind.schema ?? {}, additionalProperties: objectSchema(keyed) }),
  }
}

function describe(key: Key): string {
  const text = key.default === undefined ? key.doc : `${key.doc} Default: ${key.default}.`
  return key.reference === true ? `${text} Without effect in this node.` : text
}

function has(...names: readonly string[]): JsonSchema {
  return { required: names }
}

function hasAny(...names: readonly string[]): JsonSchema {
  return { anyOf: names.map((name) => has(name)) }
}

function isSet(name: string, value: unknown): JsonSchema {
  return { required: [name], properties: { [name]: { const: value } } }
}

function when(condition: JsonSchema, consequence: JsonSchema, otherwise?: JsonSchema): JsonSchema {
  return {
    if: condition,
    // biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema.
    then: consequence,
    ...(otherwise === undefined ? {} : { else: otherwise }),
  }
}

/** The rules between keys of the validator values that a schema can tell. */
const VALIDATOR_CONDITIONS: readonly JsonSchema[] = [
  when(hasAny('svSponsorAddress', 'scanAddress', 'scanClient', 'onboardingSecretFrom'), {
    required: ['nodeIdentifier'],
    ...hasAny('validatorWalletUsers', 'validatorWalletUser'),
    allOf: [
      when(isSet('svValidator', true), {}, has('validatorPartyHint')),
      when(isSet('disableAuth', true), {}, has('auth')),
    ],
  }),
  when(isSet('svValidator', true), { not: has('validatorPartyHint') }),
  { not: has('validatorWalletUsers', 'validatorWalletUser') },
  { not: has('scanClient', 'scanAddress') },
  { not: has('scanClient', 'nonSvValidatorTrustSingleScan') },
  {
    properties: {
      scanClient: {
        allOf: [
          when(isSet('scanType', 'trust-single'), has('scanAddress'), {
            properties: { seedUrls: { minItems: 1 } },
            required: ['seedUrls'],
          }),
          when(isSet('scanType', 'bft-custom'), {
            properties: { svNames: { minItems: 1 } },
            required: ['svNames', 'threshold'],
          }),
        ],
      },
      synchronizer: {
        anyOf: [{ maxProperties: 0 }, has('connectionType')],
        allOf: [
          when(isSet('connectionType', 'trust-single'), {
            required: ['url'],
            not: hasAny('svNames', 'threshold'),
          }),
          when(isSet('connectionType', 'bft-custom'), {
            properties: { svNames: { minItems: 1 } },
            required: ['svNames', 'threshold'],
            not: has('url'),
          }),
          when(isSet('connectionType', 'bft'), { not: has('url', 'svNames', 'threshold') }),
        ],
      },
      topup: when({ not: isSet('enabled', false) }, has('targetThroughput', 'minTopupInterval')),
    },
  },
  when(
    { ...isSet('useSequencerConnectionsFromScan', false), not: has('synchronizer') },
    has('decentralizedSynchronizerUrl'),
  ),
]
