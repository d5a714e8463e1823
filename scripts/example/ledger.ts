import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type Fields, formatInstant, formatMicros, quote, record, type Value } from './values.ts'

// A ledger just large enough to tell a consistent story: it hands out ids and times, knows which contracts are
// active and where, and refuses a step that a real ledger would refuse.

export type Template = { id: string; packageName: string }

export type Contract = {
  id: string
  template: Template
  fields: Fields
  signatories: string[]
  observers: string[]
  createdAtMicros: number
  synchronizer: string
  reassignments: number
  active: boolean
}

export type Stakeholders = { signatories: string[]; observers?: string[] }

export type Choice = {
  name: string
  argument: Value
  actors: string[]
  consuming?: boolean
  /** The template id of the interface that defines the choice, when the template inherits it. */
  interface?: Template
}

export type Steps = {
  create(template: Template, fields: Fields, stakeholders: Stakeholders): Contract
  exercise(target: Contract, choice: Choice, body: () => Value): void
  nowMicros: number
}

export type Submission = {
  workflow?: string
  /** The transaction was prepared here and signed by an external party. */
  external?: boolean
  /** The item is written in both forms, its lossless records without labels. */
  bare?: boolean
  /** Sequenced, and effective, at a multiple of this, to show times with fewer digits. */
  roundToMicros?: number
  synchronizer?: string
}

/** Sequenced apart, by two synchronizers, so that either may come first. */
export type Reassignment = { unassign(): void; assign(): void }

export type Ledger = ReturnType<typeof openLedger>

type Shape = 'labelled' | 'bare' | 'compact'
type Print = (shape: Shape) => string

export function openLedger(options: { seed: string; startMicros: number; synchronizer: string }) {
  const lines: string[] = []
  const recordTimes: number[] = []
  let migrationId = 0
  let nowMicros = options.startMicros
  let sharedTimes: number[] = []
  let issuedIds = 0

  const hash = (name: string) =>
    createHash('sha256').update(`${options.seed}/${name}`).digest('hex')
  const freshHash = (name: string) => hash(`${name}/${issuedIds++}`)
  const randomMicros = (seconds: number) =>
    parseInt(freshHash('pause').slice(0, 12), 16) % (seconds * 1_000_000)

  /** Moves on by 1 to 40 seconds, or to the next time that is to be shared with the migration before. */
  function nextUpdateId(roundToMicros = 1): string {
    const next = sharedTimes.shift() ?? nowMicros + 1_000_000 + randomMicros(39)
    nowMicros = Math.ceil(next / roundToMicros) * roundToMicros
    return `1220${freshHash('update')}`
  }

  function submit<T>(submission: Submission, body: (steps: Steps) => T): T {
    const id = nextUpdateId(submission.roundToMicros)
    const synchronizer = submission.synchronizer ?? options.synchronizer
    const effectiveMicros = nowMicros - (submission.roundToMicros ?? 90_000 + randomMicros(1))
    const events: Print[] = []
    let siblings: string[] = []
    const roots = siblings

    const steps: Steps = {
      nowMicros: effectiveMicros,
      create(template, fields, { signatories, observers = [] }) {
        const eventId = `${id}:${events.length}`
        const contract: Contract = {
          id: `00${freshHash('contract')}ca121220${freshHash('suffix')}`,
          template,
          fields,
          signatories: signatories.toSorted(),
          observers: observers.toSorted(),
          createdAtMicros: effectiveMicros,
          synchronizer,
          reassignments: 0,
          active: true,
        }
        siblings.push(eventId)
        events.push((shape) => `${quote(eventId)}:${printCreated(contract, eventId, shape)}`)
        return contract
      },
      exercise(target, choice, exerciseBody) {
        const where = `${choice.name} on ${target.template.id}`
        assert(target.active, `${where}: the contract is no longer active`)
        assert.equal(target.synchronizer, synchronizer, `${where}: the contract is elsewhere`)
        const eventId = `${id}:${events.length}`
        siblings.push(eventId)
        const outer = siblings
        const children: string[] = []
        siblings = children
        const place = events.push(() => '') - 1
        target.active = !choice.consuming
        const result = exerciseBody()
        siblings = outer
        events[place] = (shape) =>
          `${quote(eventId)}:${printExercised({ target, choice, result, children, eventId, shape })}`
      },
    }
    const outcome = body(steps)
    assert(events.length > 0, 'a transaction of the story has at least one event')

    const head = [
      `"update_id":${quote(id)}`,
      `"migration_id":${migrationId}`,
      `"workflow_id":${quote(submission.workflow ?? '')}`,
      `"record_time":${quote(formatMicros(nowMicros))}`,
      `"synchronizer_id":${quote(synchronizer)}`,
      `"effective_at":${quote(formatInstant(effectiveMicros))}`,
      `"root_event_ids":${JSON.stringify(roots)}`,
    ].join()
    const tail = submission.external
      ? `,"external_transaction_hash":${quote(freshHash('signed'))}`
      : ''
    write(
      (shape) => `{${head},"events_by_id":{${events.map((print) => print(shape)).join()}}${tail}}`,
      submission.bare,
    )
    return outcome
  }

  function reassign(contract: Contract, target: string, submitter: string): Reassignment {
    assert(contract.active, 'only an active contract is reassigned')
    const source = contract.synchronizer
    const counter = contract.reassignments + 1
    const unassignId = `00${freshHash('unassign')}`
    contract.reassignments = counter
    contract.synchronizer = 'in flight'
    return {
      unassign: () =>
        writeReassignment(() => [
          `"submitter":${quote(submitter)}`,
          `"source_synchronizer":${quote(source)}`,
          `"migration_id":${migrationId}`,
          `"target_synchronizer":${quote(target)}`,
          `"unassign_id":${quote(unassignId)}`,
          `"reassignment_counter":${counter}`,
          `"contract_id":${quote(contract.id)}`,
        ]),
      assign: () => {
        contract.synchronizer = target
        writeReassignment((id) => [
          `"submitter":${quote(submitter)}`,
          `"source_synchronizer":${quote(source)}`,
          `"target_synchronizer":${quote(target)}`,
          `"migration_id":${migrationId}`,
          `"unassign_id":${quote(unassignId)}`,
          `"created_event":${printCreated(contract, `${id}:0`, 'labelled')}`,
          `"reassignment_counter":${counter}`,
        ])
      },
    }
  }

  function writeReassignment(event: (id: string) => string[]): void {
    const id = nextUpdateId()
    const recordTime = quote(formatMicros(nowMicros))
    const fields = event(id).join()
    write(() => `{"update_id":${quote(id)},"record_time":${recordTime},"event":{${fields}}}`)
  }

  function write(print: Print, bare = false): void {
    const previous = recordTimes.at(-1)
    assert(previous === undefined || previous < nowMicros, 'time moves on between two updates')
    recordTimes.push(nowMicros)
    lines.push(
      bare
        ? `{"protobuf_json":${print('bare')},"compact_json":${print('compact')}}`
        : print('labelled'),
    )
  }

  /** Its first updates are sequenced at times that the migration before has already used. */
  function migrate(firstTimes: number[]): void {
    migrationId += 1
    sharedTimes = firstTimes
    recordTimes.length = 0
  }

  return {
    lines,
    recordTimes,
    hash,
    submit,
    reassign,
    migrate,
    wait: (micros: number) => {
      nowMicros += micros
    },
    party: (hint: string) => `${hint}::1220${hash(`party/${hint}`)}`,
  }
}

function printCreated(contract: Contract, eventId: string, shape: Shape): string {
  const createdAt = formatMicros(contract.createdAtMicros).replace(/\.?0*Z$/, 'Z')
  return `{${[
    '"event_type":"created_event"',
    `"event_id":${quote(eventId)}`,
    `"contract_id":${quote(contract.id)}`,
    `"template_id":${quote(contract.template.id)}`,
    `"package_name":${quote(contract.template.packageName)}`,
    `"create_arguments":${record(contract.fields)[shape]}`,
    `"created_at":${quote(createdAt)}`,
    `"signatories":${JSON.stringify(contract.signatories)}`,
    `"observers":${JSON.stringify(contract.observers)}`,
  ].join()}}`
}

function printExercised(event: {
  target: Contract
  choice: Choice
  result: Value
  children: string[]
  eventId: string
  shape: Shape
}): string {
  const { target, choice, shape } = event
  const inherited =
    choice.interface === undefined ? [] : [`"interface_id":${quote(choice.interface.id)}`]
  return `{${[
    '"event_type":"exercised_event"',
    `"event_id":${quote(event.eventId)}`,
    `"contract_id":${quote(target.id)}`,
    `"template_id":${quote(target.template.id)}`,
    `"package_name":${quote(target.template.packageName)}`,
    `"choice":${quote(choice.name)}`,
    `"choice_argument":${choice.argument[shape]}`,
    `"child_event_ids":${JSON.stringify(event.children)}`,
    `"exercise_result":${event.result[shape]}`,
    `"consuming":${choice.consuming === true}`,
    `"acting_parties":${JSON.stringify(choice.actors)}`,
    ...inherited,
  ].join()}}`
}
