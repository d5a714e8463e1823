import type { Json } from './random-values.ts'

// Small updates written by hand, for tests that care about one field. Each call gives a new object.

export const SYNCHRONIZER = 'global-domain::1220abcd'
export const TEMPLATE = `${'ab'.repeat(32)}:Main:Thing`

export function createdEvent(eventId: string, changes: Json = {}): Json {
  return {
    event_type: 'created_event',
    event_id: eventId,
    contract_id: `00${eventId}`,
    template_id: TEMPLATE,
    package_name: 'main',
    create_arguments: { record: { fields: [{ label: 'owner', value: { party: 'alice::12' } }] } },
    created_at: '2024-09-20T13:31:28Z',
    signatories: ['alice::12'],
    observers: [],
    ...changes,
  }
}

export function exercisedEvent(eventId: string, children: string[], changes: Json = {}): Json {
  return {
    event_type: 'exercised_event',
    event_id: eventId,
    contract_id: `00${eventId}`,
    template_id: TEMPLATE,
    package_name: 'main',
    choice: 'Archive',
    choice_argument: { record: {} },
    child_event_ids: children,
    exercise_result: { unit: {} },
    consuming: true,
    acting_parties: ['alice::12'],
    ...changes,
  }
}

/** A transaction that creates one contract, unless the changes say otherwise. */
export function transaction(changes: Json = {}): Json {
  const updateId = (changes.update_id as string | undefined) ?? '1220aa'
  return {
    update_id: updateId,
    migration_id: 1,
    workflow_id: '',
    record_time: '2024-09-20T13:31:28.000000Z',
    synchronizer_id: SYNCHRONIZER,
    effective_at: '2024-09-20T13:31:28Z',
    root_event_ids: [`${updateId}:0`],
    events_by_id: { [`${updateId}:0`]: createdEvent(`${updateId}:0`) },
    ...changes,
  }
}

/** A transaction with the events, the roots being those that are nobody's child. */
export function transactionOf(events: Json[], changes: Json = {}): Json {
  const children = new Set(events.flatMap((event) => (event.child_event_ids as string[]) ?? []))
  return transaction({
    root_event_ids: events.map((event) => event.event_id).filter((id) => !children.has(String(id))),
    events_by_id: Object.fromEntries(events.map((event) => [event.event_id, event])),
    ...changes,
  })
}

export function unassignment(changes: Json = {}, eventChanges: Json = {}): Json {
  return {
    update_id: '1220ee',
    record_time: '2024-09-20T13:31:28.000000Z',
    event: {
      submitter: 'alice::12',
      source_synchronizer: SYNCHRONIZER,
      migration_id: 1,
      target_synchronizer: 'other::1220ef',
      unassign_id: '00ab',
      reassignment_counter: 1,
      contract_id: '00cc',
      ...eventChanges,
    },
    ...changes,
  }
}

export function assignment(changes: Json = {}, eventChanges: Json = {}): Json {
  return {
    update_id: '1220ed',
    record_time: '2024-09-20T13:31:28.000000Z',
    event: {
      submitter: 'alice::12',
      source_synchronizer: 'other::1220ef',
      target_synchronizer: SYNCHRONIZER,
      migration_id: 1,
      unassign_id: '00ab',
      created_event: createdEvent('1220ed:0'),
      reassignment_counter: 1,
      ...eventChanges,
    },
    ...changes,
  }
}

/** An update that re-creates a contract at the beginning of a migration. */
export function importUpdate(updateId: string, contractId: string, changes: Json = {}): Json {
  const event = createdEvent(`${updateId}:0`, { contract_id: contractId })
  return transaction({
    update_id: updateId,
    record_time: '0001-01-01T00:00:00.000000Z',
    workflow_id: 'canton-network-acs-import',
    events_by_id: { [`${updateId}:0`]: event },
    ...changes,
  })
}

/** So many small transactions of one migration, a second apart. */
export function plainLines(count: number, options: { from?: number; migrationId?: number } = {}) {
  const { from = 0, migrationId = 1 } = options
  return Array.from({ length: count }, (_, i) => {
    const n = from + i
    const time = new Date(Date.UTC(2025, 0, 1) + n * 1000).toISOString().replace('Z', '000Z')
    return JSON.stringify(
      transaction({
        update_id: `1220${n.toString(16).padStart(8, '0')}`,
        migration_id: migrationId,
        record_time: time,
      }),
    )
  })
}
