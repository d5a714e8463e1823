import { badRequest } from '../http/ledger-error.ts'

/** The rights of a user, by the numbers under which they are stored (the protocol's field numbers). */
const RIGHT_KINDS = {
  ParticipantAdmin: { number: 1, withParty: false },
  CanActAs: { number: 2, withParty: true },
  CanReadAs: { number: 3, withParty: true },
  IdentityProviderAdmin: { number: 4, withParty: false },
  CanReadAsAnyParty: { number: 5, withParty: false },
  CanExecuteAs: { number: 6, withParty: true },
  CanExecuteAsAnyParty: { number: 7, withParty: false },
  CanActAsAnyParty: { number: 8, withParty: false },
} as const

export type RightKind = keyof typeof RIGHT_KINDS
export const RIGHT_KIND_NAMES = Object.keys(RIGHT_KINDS) as RightKind[]

/** `party` is the empty string for the kinds that take none. */
export type Right = { kind: RightKind; party: string }

/** The empty string is the default provider; it always exists and is never listed. */
export const DEFAULT_PROVIDER = ''

export type User = {
  id: string
  primaryParty: string
  isDeactivated: boolean
  metadata: { resourceVersion: string; annotations: Record<string, string> }
  identityProviderId: string
  primaryPartyAuthentication: boolean
}

export type IdentityProvider = {
  identityProviderId: string
  isDeactivated: boolean
  issuer: string
  jwksUrl: string
  audience: string
}

export type PartyDetails = {
  party: string
  isLocal: boolean
  localMetadata: { resourceVersion: string; annotations: Record<string, string> }
  identityProviderId: string
}

/** A user may hold this many rights; counted after a change, which is refused as a whole. */
export const RIGHTS_PER_USER_MAX = 1000
/** A larger page is cut to this silently, as clients of this API expect. */
export const USERS_PAGE_MAX = 1000
/** A larger page of parties is refused. */
export const PARTIES_PAGE_MAX = 10_000
/** Identity providers of one node: the protocol's constant. */
export const IDENTITY_PROVIDERS_MAX = 16

const USER_ID = /^[a-zA-Z0-9@^$.!`\-#+'~_|:()]{1,128}$/
const LEDGER_STRING = /^[a-zA-Z0-9._:\-#/ ]{1,255}$/
const PARTY_ID = /^[a-zA-Z0-9:\-_ ]{1,255}$/

/** What is wrong with a user id, or undefined. */
export const userIdFault = (id: string): string | undefined =>
  USER_ID.test(id)
    ? undefined
    : `User ID "${id}" does not match regex "[a-zA-Z0-9@^$.!\`\\-#+'~_|:\\(\\)]{1,128}"`

/** What is wrong with an identity provider id, or undefined. */
export const providerIdFault = (id: string): string | undefined => {
  if (LEDGER_STRING.test(id)) return undefined
  if (id === '') return 'an identity provider id must not be empty'
  if (id.length > 255) return 'an identity provider id has at most 255 characters'
  return `identity provider id "${id}" has a character that is none of letters, digits, blank and ._:-#/`
}

/** What is wrong with a party id, or undefined. */
export const partyFault = (party: string): string | undefined => {
  if (PARTY_ID.test(party)) return undefined
  if (party === '') return 'a party id must not be empty'
  if (party.length > 255) return 'a party id has at most 255 characters'
  return `party id "${party}" has a character that is none of letters, digits, blank and :-_`
}

/** Text that both engines can store and that means the same after a round trip. */
export const isStorableText = (text: string): boolean =>
  text.isWellFormed() && !text.includes('\u0000')

export const rightNumber = (kind: RightKind): number => RIGHT_KINDS[kind].number

export const takesParty = (kind: RightKind): boolean => RIGHT_KINDS[kind].withParty

const KIND_BY_NUMBER = new Map(RIGHT_KIND_NAMES.map((kind) => [rightNumber(kind), kind]))

export const rightFromRow = (number: number, party: string): Right => {
  const kind = KIND_BY_NUMBER.get(number)
  if (kind === undefined) throw new Error(`The store holds a right of unknown kind ${number}.`)
  return { kind, party }
}

/** Two rights are the same when their keys are. */
export const rightKey = ({ kind, party }: Right): string => `${kind} ${party}`

export type RightJson = { kind: Record<string, { value: { party?: string } }> }

export const rightToJson = ({ kind, party }: Right): RightJson => ({
  kind: { [kind]: { value: takesParty(kind) ? { party } : {} } },
})

/** A right as a request states it: perhaps of no kind, its party not checked. */
export type StatedRight = { kind: RightKind | undefined; party: string }

/** Decodes a right of a request body; whether it can be granted is another question. */
export const rightFromJson = (json: unknown): StatedRight => {
  const kinds = isRecord(json) ? (json.kind ?? {}) : undefined
  if (!isRecord(kinds)) throw badRequest('A right must be an object {"kind": {…}}.')
  const names = Object.keys(kinds)
  const [name] = names
  if (name === undefined || (name === 'Empty' && names.length === 1)) {
    return { kind: undefined, party: '' }
  }
  if (names.length > 1 || !Object.hasOwn(RIGHT_KINDS, name)) {
    throw badRequest(
      `A right must have exactly one kind of ${RIGHT_KIND_NAMES.join(', ')}; found ${names.slice(0, 4).join(', ')}.`,
    )
  }
  const kind = name as RightKind
  const payload = kinds[name] ?? {}
  const value = isRecord(payload) ? (payload.value ?? {}) : undefined
  if (!isRecord(value)) throw badRequest(`The right ${kind} must be {"value": {…}}.`)
  if (!takesParty(kind)) return { kind, party: '' }
  const party = value.party ?? ''
  if (typeof party !== 'string') throw badRequest(`The party of ${kind} must be a string.`)
  return { kind, party }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
