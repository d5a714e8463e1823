import { createHash } from 'node:crypto'
import type { ValueType } from '../values/value-type.ts'

/** What a template is: its name on the deployed network, its payload, and whose consent it needs. */
export type Template<P> = {
  readonly packageName: string
  /** `Module.Name:Entity`. */
  readonly name: string
  readonly payload: ValueType<P>
  signatories(payload: P): string[]
  observers(payload: P): string[]
  /** What must hold for every contract; the sentence says what does not. */
  ensure?(payload: P): string | undefined
  /** Anyone may use contracts of this template without being told of them; scans publish them. */
  readonly isPublic?: true
  /** How its contracts look to those who know an interface only. */
  readonly interfaces?: readonly InterfaceView<P>[]
}

/** An interface of the token standard; its choices are inherited by templates. */
export type Interface = { readonly packageName: string; readonly name: string }

/** A template's way to look like an interface. */
export type InterfaceView<P> = {
  readonly interface: Interface
  readonly view: ValueType<unknown>
  viewOf(payload: P): unknown
}

/** What may be done with a contract, and by whom. */
export type Choice<P, A, R> = {
  readonly name: string
  readonly consuming: boolean
  readonly argument: ValueType<A>
  readonly result: ValueType<R>
  /** The interface where the choice is defined, if the template inherits it. */
  readonly interface?: Interface
  controllers(payload: P, argument: A): string[]
  /** Runs with the authority of the contract's signatories and of the controllers. */
  run(steps: Steps, self: Self<P>, argument: A): Promise<R>
}

export type Self<P> = { readonly contractId: string; readonly payload: P }

/** What a running choice may do. Each step is checked and becomes part of the transaction. */
export type Steps = {
  /** The time that the ledger shows to contracts, in microseconds since 1970. */
  readonly nowMicros: bigint
  create<P>(template: Template<P>, payload: P): Promise<string>
  /** Needs the authority of a stakeholder, unless the template is public. */
  fetch<P>(template: Template<P>, contractId: string): Promise<P>
  exercise<P, A, R>(step: {
    template: Template<P>
    contractId: string
    choice: Choice<P, A, R>
    argument: A
  }): Promise<R>
  archive<P>(template: Template<P>, contractId: string): Promise<void>
}

/** A template with its choices, as the ledger knows it. */
export type TemplateEntry = {
  readonly id: string
  readonly template: Template<unknown>
  readonly choices: ReadonlyMap<string, Choice<unknown, unknown, unknown>>
  /** By the id of the interface. */
  readonly interfaces: ReadonlyMap<string, InterfaceView<unknown>>
}

/** A choice refuses: the sentence is for whoever submitted the command. */
export class ChoiceRefusal extends Error {
  override name = 'ChoiceRefusal'
}

export function require(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new ChoiceRefusal(otherwise)
}

export function defineTemplate<P>(template: Template<P>): Template<P> {
  return template
}

export function defineChoice<P, A, R>(
  _template: Template<P>,
  choice: Choice<P, A, R>,
): Choice<P, A, R> {
  return choice
}

export function implement<P, V>(
  implemented: Interface,
  view: ValueType<V>,
  viewOf: (payload: P) => V,
): InterfaceView<P> {
  return { interface: implemented, view: view as ValueType<unknown>, viewOf }
}

/** Puts a template and its choices together; every template has the choice Archive besides. */
export function templateEntry<P>(
  template: Template<P>,
  choices: readonly Choice<P, unknown, unknown>[],
): TemplateEntry {
  return {
    id: identifierOf(template),
    template: template as Template<unknown>,
    choices: new Map(
      choices.map((choice) => [choice.name, choice as Choice<unknown, unknown, unknown>]),
    ),
    interfaces: new Map(
      (template.interfaces ?? []).map((one) => [
        identifierOf(one.interface),
        one as InterfaceView<unknown>,
      ]),
    ),
  }
}

/** `<package id>:<module>:<entity>`, as the history shows it. */
export function identifierOf({ packageName, name }: Interface): string {
  return `${packageIdOf(packageName)}:${name}`
}

/**
 * Packages of the embedded ledger are not compiled, so the id is that of the name: the same on every
 * node, and 64 hex digits as everywhere.
 */
export function packageIdOf(packageName: string): string {
  return createHash('sha256').update(`annals-package/${packageName}`).digest('hex')
}
