type Schema = Record<string, unknown>

const text: Schema = { type: 'string' }
const int64: Schema = { type: 'integer', format: 'int64' }
const strings: Schema = { type: 'array', items: text }
const time: Schema = { type: 'string', format: 'date-time' }
const recordTime: Schema = {
  type: 'string',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$',
  description:
    'When the update was sequenced: always six fraction digits, so that text order is time order.',
}
const offset: Schema = {
  type: 'string',
  pattern: '^[0-9a-f]{18}$',
  description: 'Rises with every update of this node; not comparable across nodes.',
}
const value: Schema = {
  description: 'A ledger value in the encoding that was asked for.',
}

function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}

function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] }
}

/** An object with the properties, all required but those named as optional. */
function object(
  properties: Record<string, Schema>,
  optional: string[] = [],
  more: Schema = {},
): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', properties, required, ...more }
}

/** What we answer is closed: an unknown property would be a mistake of ours. */
const closed = { additionalProperties: false }

const created = {
  event_type: { const: 'created_event' },
  event_id: text,
  contract_id: text,
  template_id: text,
  package_name: text,
  create_arguments: value,
  created_at: time,
  signatories: strings,
  observers: strings,
}

const exercised = {
  event_type: { const: 'exercised_event' },
  event_id: text,
  contract_id: text,
  template_id: text,
  package_name: text,
  choice: text,
  choice_argument: value,
  child_event_ids: strings,
  exercise_result: value,
  consuming: { type: 'boolean' },
  acting_parties: strings,
  interface_id: text,
}

const transaction = {
  update_id: text,
  migration_id: int64,
  workflow_id: text,
  record_time: recordTime,
  synchronizer_id: text,
  effective_at: time,
  root_event_ids: strings,
  events_by_id: { type: 'object', additionalProperties: ref('TreeEvent') },
  external_transaction_hash: { type: 'string', pattern: '^([0-9a-f]{2})+$' },
}

const pageRequest = {
  page_size: {
    type: 'integer',
    format: 'int32',
    minimum: 1,
    description: 'The most updates to return. A page with fewer is the end of the history.',
  },
  after: nullable(ref('After')),
}

const cachedIds: Schema = {
  anyOf: [strings, { type: 'null' }],
  description: 'Contracts that the client has: for these the answer leaves the contract out.',
}
const contractMap: Schema = {
  type: 'object',
  additionalProperties: ref('MaybeCachedContract'),
  description: 'By contract id. An id that was sent and is not here is a contract that is gone.',
}

export const schemas: Record<string, Schema> = {
  Error: object({ error: text }, [], closed),
  LedgerValueEncoding: {
    enum: ['compact_json', 'protobuf_json'],
    default: 'compact_json',
    description:
      'compact_json is made for people; protobuf_json names the kind of every value, so that nothing is lost.',
  },
  After: object({
    after_migration_id: {
      ...int64,
      description: 'Where to start; updates of higher migrations always come later.',
    },
    after_record_time: {
      ...text,
      description:
        'ISO-8601 with Z or an offset; only later updates of that migration are returned.',
    },
  }),
  UpdateHistoryRequest: object(
    {
      ...pageRequest,
      ledger_value_encoding: nullable(ref('LedgerValueEncoding')),
      daml_value_encoding: nullable(ref('LedgerValueEncoding')),
    },
    ['after', 'ledger_value_encoding', 'daml_value_encoding'],
  ),
  UpdateHistoryRequestV0: object({ ...pageRequest, lossless: nullable({ type: 'boolean' }) }, [
    'after',
    'lossless',
  ]),
  UpdateHistoryResponse: object(
    { transactions: { type: 'array', items: ref('UpdateItem') } },
    [],
    closed,
  ),
  UpdateHistoryResponseV2: object(
    { transactions: { type: 'array', items: ref('UpdateItemV2') } },
    [],
    closed,
  ),
  UpdateItem: { oneOf: [ref('Transaction'), ref('Reassignment')] },
  UpdateItemV2: { oneOf: [ref('TransactionV2'), ref('Reassignment')] },
  Transaction: object({ ...transaction, offset }, ['external_transaction_hash'], closed),
  TransactionV2: object(transaction, ['external_transaction_hash'], closed),
  TreeEvent: {
    oneOf: [ref('CreatedEvent'), ref('ExercisedEvent')],
    discriminator: {
      propertyName: 'event_type',
      mapping: {
        created_event: '#/components/schemas/CreatedEvent',
        exercised_event: '#/components/schemas/ExercisedEvent',
      },
    },
  },
  CreatedEvent: object(created, [], closed),
  ExercisedEvent: object(exercised, ['interface_id'], closed),
  Reassignment: object(
    {
      update_id: text,
      offset,
      record_time: recordTime,
      event: { oneOf: [ref('Assignment'), ref('Unassignment')] },
    },
    [],
    closed,
  ),
  Assignment: object(
    {
      submitter: text,
      source_synchronizer: text,
      target_synchronizer: text,
      migration_id: int64,
      unassign_id: text,
      created_event: ref('CreatedEvent'),
      reassignment_counter: int64,
    },
    [],
    closed,
  ),
  Unassignment: object(
    {
      submitter: text,
      source_synchronizer: text,
      migration_id: int64,
      target_synchronizer: text,
      unassign_id: text,
      reassignment_counter: int64,
      contract_id: text,
    },
    [],
    closed,
  ),
  MigrationInfoRequest: object({ migration_id: int64 }),
  MigrationInfo: object(
    {
      previous_migration_id: nullable(int64),
      record_time_range: {
        type: 'array',
        items: object({ synchronizer_id: text, min: time, max: time }, [], closed),
      },
      last_import_update_id: nullable(text),
      complete: { type: 'boolean' },
      import_updates_complete: { type: 'boolean' },
    },
    [],
    closed,
  ),
  UpdatesBeforeRequest: object(
    {
      migration_id: int64,
      synchronizer_id: text,
      before: text,
      at_or_after: nullable(text),
      count: { type: 'integer', minimum: 1, maximum: 1000 },
    },
    ['at_or_after'],
  ),
  ImportUpdatesRequest: object({
    migration_id: int64,
    after_update_id: text,
    limit: { type: 'integer', minimum: 1, maximum: 1000 },
  }),
  BackfillingStatus: object({ complete: { type: 'boolean' } }, [], {
    ...closed,
    description: 'Whether this node holds the whole history.',
  }),
  ScanList: object(
    {
      scans: {
        type: 'array',
        items: object(
          {
            domainId: text,
            scans: { type: 'array', items: object({ publicUrl: text, svName: text }, [], closed) },
          },
          [],
          closed,
        ),
      },
    },
    [],
    { ...closed, description: 'The scans of the network that this node knows.' },
  ),
  NetworkContract: object(
    {
      template_id: text,
      contract_id: text,
      payload: { type: 'object', description: 'In the compact encoding.' },
      created_event_blob: text,
      created_at: time,
    },
    [],
    closed,
  ),
  MaybeCachedContract: object(
    { contract: ref('NetworkContract'), domain_id: text },
    ['contract', 'domain_id'],
    { ...closed, description: 'Without `domain_id`, the contract is between two synchronizers.' },
  ),
  DsoPartyId: object({ dso_party_id: text }, [], closed),
  AmuletRulesRequest: object(
    {
      cached_amulet_rules_contract_id: nullable(text),
      cached_amulet_rules_domain_id: nullable(text),
    },
    ['cached_amulet_rules_contract_id', 'cached_amulet_rules_domain_id'],
  ),
  AmuletRules: object({ amulet_rules_update: ref('MaybeCachedContract') }, [], closed),
  MiningRoundsRequest: object(
    {
      cached_open_mining_round_contract_ids: cachedIds,
      cached_issuing_round_contract_ids: cachedIds,
    },
    ['cached_open_mining_round_contract_ids', 'cached_issuing_round_contract_ids'],
  ),
  MiningRounds: object(
    {
      time_to_live_in_microseconds: { type: 'number' },
      open_mining_rounds: contractMap,
      issuing_mining_rounds: contractMap,
    },
    [],
    closed,
  ),
  TransferPreapproval: object({ transfer_preapproval: ref('MaybeCachedContract') }, [], closed),
  MemberTrafficStatus: object(
    {
      traffic_status: object(
        {
          actual: object(
            {
              total_consumed: { ...int64, description: 'Bytes of extra traffic that are used up.' },
              total_limit: { ...int64, description: 'Bytes of extra traffic that may be used.' },
            },
            [],
            closed,
          ),
          target: object(
            { total_purchased: { ...int64, description: 'Bytes of extra traffic bought.' } },
            [],
            closed,
          ),
        },
        [],
        closed,
      ),
    },
    [],
    closed,
  ),
  Version: object({ version: text, commit_ts: time }, [], {
    ...closed,
    description: 'The version of the software.',
  }),
  Status: object(
    {
      success: object({
        id: text,
        uptime: text,
        ports: { type: 'object', additionalProperties: { type: 'integer' } },
        active: { type: 'boolean' },
        extra: { type: 'object' },
      }),
    },
    [],
    { ...closed, description: 'What the node is and how it does.' },
  ),
}
