import { hash } from 'node:crypto'
import { DECIMAL_MAX } from '../values/decimal.ts'
import type { Instant } from '../values/instant.ts'
import { record, unit } from '../values/value-type.ts'
import { type Contract, isStakeholder, isVisible } from './contract.ts'
import {
  choiceRefused,
  contractArchived,
  contractContended,
  contractInFlight,
  contractNotFound,
  insufficientAuthority,
  noCommonSynchronizer,
  wronglyTyped,
} from './errors.ts'
import {
  type Choice,
  ChoiceRefusal,
  identifierOf,
  type Steps,
  type Template,
  type TemplateEntry,
} from './template.ts'

type AnyChoice = Choice<unknown, unknown, unknown>

/** A command with its values read and typed. */
export type Command =
  | { kind: 'create'; entry: TemplateEntry; payload: unknown }
  | {
      kind: 'exercise'
      entry: TemplateEntry
      contractId: string
      choice: AnyChoice
      argument: unknown
    }
  | {
      kind: 'createAndExercise'
      entry: TemplateEntry
      payload: unknown
      choice: AnyChoice
      argument: unknown
    }

export type Surroundings = {
  actAs: readonly string[]
  readAs: readonly string[]
  /** Contracts that the submitter was told of by a stakeholder. */
  disclosed: readonly string[]
  nowMicros: bigint
  effectiveAt: Instant
  offset: bigint
  updateId: string
  /** The synchronizer that the submitter asks for; otherwise that of the contracts decides. */
  wantedSynchronizerId: string | undefined
  defaultSynchronizerId: string
  /** The contract as of now, archived or not. */
  lookup(contractId: string): Promise<Contract | undefined>
  /** Archives after this offset happened while the submission was under way. */
  startOffset: bigint
  entryOf(template: Template<unknown>): TemplateEntry
}

export type CreatedNode = { kind: 'created'; contract: Contract; informees: string[] }
export type ExercisedNode = {
  kind: 'exercised'
  contract: Contract
  choice: AnyChoice
  argument: unknown
  result: unknown
  actors: string[]
  children: number[]
  informees: string[]
}
/** Event n of the transaction stands at place n: they are numbered in preorder. */
export type EventNode = CreatedNode | ExercisedNode

export type Execution = {
  nodes: EventNode[]
  roots: number[]
  created: Contract[]
  /** Contracts from before the transaction that it consumed. */
  archived: Contract[]
  synchronizerId: string
}

/** Every template has it: the signatories together may end a contract. */
export const archiveChoice: AnyChoice = {
  name: 'Archive',
  consuming: true,
  argument: record({}),
  result: unit,
  controllers: () => [],
  run: async () => ({}),
}

/** Choices that call each other without end are stopped here; the ledger's own limit is near it. */
const DEPTH_MAX = 100
/** A transaction of more events than this is a mistake of a template. */
const EVENTS_MAX = 10_000

/**
 * Runs the commands of one submission: checks that everyone concerned has agreed, and builds the
 * tree of events. Nothing is stored here.
 */
export async function executeCommands(
  commands: readonly Command[],
  around: Surroundings,
): Promise<Execution> {
  const nodes: EventNode[] = []
  const roots: number[] = []
  const created = new Map<string, Contract>()
  const consumed = new Map<string, Contract>()
  const sight = {
    readers: new Set([...around.actAs, ...around.readAs]),
    disclosed: around.disclosed,
  }
  let synchronizerId = around.wantedSynchronizerId
  let depth = 0

  async function activeContract(contractId: string, expected: TemplateEntry): Promise<Contract> {
    if (consumed.has(contractId)) throw contractArchived(contractId)
    const contract = created.get(contractId) ?? (await around.lookup(contractId))
    if (contract === undefined) throw contractNotFound(contractId)
    if (contract.archivedOffset !== undefined) {
      throw contract.archivedOffset > around.startOffset
        ? contractContended(contractId)
        : contractArchived(contractId)
    }
    if (contract.entry.id !== expected.id) {
      throw wronglyTyped(contractId, expected.template.name, contract.entry.template.name)
    }
    if (!created.has(contractId)) agreeOnSynchronizer(contract)
    return contract
  }

  function agreeOnSynchronizer(contract: Contract): void {
    if (contract.synchronizerId === undefined) throw contractInFlight(contract.contractId)
    synchronizerId ??= contract.synchronizerId
    if (synchronizerId !== contract.synchronizerId) throw noCommonSynchronizer()
  }

  function begin(node: EventNode, siblings: number[]): number {
    if (nodes.length >= EVENTS_MAX) throw choiceRefused('The transaction has too many events.')
    siblings.push(nodes.length)
    return nodes.push(node) - 1
  }

  function createContract(
    entry: TemplateEntry,
    payload: unknown,
    place: { authority: ReadonlySet<string>; siblings: number[] },
  ): Contract {
    const { template } = entry
    requireInRange(payload)
    const fault = template.ensure?.(payload)
    if (fault !== undefined) throw choiceRefused(fault)
    const signatories = distinct(template.signatories(payload))
    requireConsent(signatories, place.authority, `Creating a contract of ${template.name}`)
    const observers = distinct(template.observers(payload)).filter(
      (party) => !signatories.includes(party),
    )
    const contract: Contract = {
      contractId: contractIdOf(around.updateId, nodes.length),
      entry,
      payload,
      signatories,
      observers,
      createdAt: around.effectiveAt,
      createdOffset: around.offset,
      createdNodeId: nodes.length,
      archivedOffset: undefined,
      synchronizerId: undefined,
      reassignmentCounter: 0n,
    }
    created.set(contract.contractId, contract)
    begin({ kind: 'created', contract, informees: [...signatories, ...observers] }, place.siblings)
    return contract
  }

  async function exercise(
    contract: Contract,
    { choice, argument }: { choice: AnyChoice; argument: unknown },
    place: { authority: ReadonlySet<string>; siblings: number[] },
  ): Promise<unknown> {
    const { entry, payload } = contract
    const actors =
      choice === archiveChoice
        ? contract.signatories
        : distinct(choice.controllers(payload, argument))
    requireConsent(actors, place.authority, `${choice.name} on ${entry.template.name}`)
    const stakeholders = choice.consuming ? contract.observers : []
    const node: ExercisedNode = {
      kind: 'exercised',
      contract,
      choice,
      argument,
      result: undefined,
      actors,
      children: [],
      informees: distinct([...contract.signatories, ...stakeholders, ...actors]),
    }
    begin(node, place.siblings)
    if (choice.consuming) consumed.set(contract.contractId, contract)
    depth += 1
    if (depth > DEPTH_MAX) throw choiceRefused('The choices call each other too deeply.')
    const authority = new Set([...contract.signatories, ...actors])
    const steps = stepsOf({ authority, siblings: node.children })
    node.result = await choice.run(steps, { contractId: contract.contractId, payload }, argument)
    requireInRange(node.result)
    depth -= 1
    return node.result
  }

  function stepsOf(place: { authority: ReadonlySet<string>; siblings: number[] }): Steps {
    const entryOf = (template: unknown) => around.entryOf(template as Template<unknown>)
    return {
      nowMicros: around.nowMicros,
      async create(template, payload) {
        return createContract(entryOf(template), payload, place).contractId
      },
      async fetch<P>(template: Template<P>, contractId: string): Promise<P> {
        const contract = await activeContract(contractId, entryOf(template))
        if (template.isPublic === undefined && !isStakeholder(contract, place.authority)) {
          throw insufficientAuthority(`Reading a contract of ${template.name}`, [
            'one of its stakeholders',
          ])
        }
        return contract.payload as P
      },
      async exercise<P, A, R>(step: {
        template: Template<P>
        contractId: string
        choice: Choice<P, A, R>
        argument: A
      }): Promise<R> {
        const contract = await activeContract(step.contractId, entryOf(step.template))
        const { argument } = step
        const choice = step.choice as AnyChoice
        return (await exercise(contract, { choice, argument }, place)) as R
      },
      async archive(template, contractId) {
        const contract = await activeContract(contractId, entryOf(template))
        await exercise(contract, { choice: archiveChoice, argument: {} }, place)
      },
    }
  }

  async function visibleContract(contractId: string, entry: TemplateEntry): Promise<Contract> {
    const known = created.get(contractId) ?? (await around.lookup(contractId))
    if (known === undefined || !isVisible(known, sight)) throw contractNotFound(contractId)
    return activeContract(contractId, entry)
  }

  const root = { authority: new Set(around.actAs), siblings: roots }
  try {
    for (const command of commands) {
      const contract =
        command.kind === 'exercise'
          ? await visibleContract(command.contractId, command.entry)
          : createContract(command.entry, command.payload, root)
      if (command.kind !== 'create') await exercise(contract, command, root)
    }
  } catch (error) {
    if (error instanceof ChoiceRefusal) throw choiceRefused(error.message)
    throw error
  }
  const chosen = synchronizerId ?? around.defaultSynchronizerId
  for (const contract of created.values()) {
    contract.synchronizerId = chosen
    if (consumed.has(contract.contractId)) contract.archivedOffset = around.offset
  }
  return {
    nodes,
    roots,
    created: [...created.values()],
    archived: [...consumed.values()].filter(({ contractId }) => !created.has(contractId)),
    synchronizerId: chosen,
  }
}

function requireConsent(
  needed: readonly string[],
  authority: ReadonlySet<string>,
  action: string,
): void {
  const missing = needed.filter((party) => !authority.has(party))
  if (missing.length > 0) throw insufficientAuthority(action, missing)
}

/** What a choice has computed must fit the decimals of the ledger, or it could not be read again. */
function requireInRange(value: unknown): void {
  if (typeof value === 'bigint') {
    if (value > DECIMAL_MAX || value < -DECIMAL_MAX) {
      throw choiceRefused('An amount would have more than 28 digits before the point.')
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) requireInRange(part)
  }
}

/** `00`, 32 bytes, the version, and a multihash of 32 bytes more. */
function contractIdOf(updateId: string, node: number): string {
  const hashOf = (what: string) => hash('sha256', `${what}/${updateId}/${node}`)
  return `00${hashOf('contract')}ca121220${hashOf('suffix')}`
}

function distinct(parties: readonly string[]): string[] {
  return [...new Set(parties)].sort()
}

export function interfaceIdOf(choice: AnyChoice): string | undefined {
  return choice.interface && identifierOf(choice.interface)
}
