import type { FastifyRequest } from 'fastify'
import { badRequest } from '../http/plain-error.ts'
import { type JsonObject, pathText, textField } from '../users/request-fields.ts'
import { isStorableText, partyFault } from '../users/user.ts'
import { type Decimal, parseDecimal } from '../values/decimal.ts'
import { INSTANT_MAX, microsOf } from '../values/instant.ts'

// The fields of the wallet API. Whatever is wrong is a sentence that says how to mend it.

/** Tracking ids are mostly UUIDs; they become part of keys. */
const TRACKING_ID_LENGTH_MAX = 255
/** A few sentences; they end up in the public history for good. */
const DESCRIPTION_LENGTH_MAX = 1000
/** Ids of contracts have 138 hexadecimal digits on the networks. */
const CONTRACT_ID = /^(?:[0-9a-f]{2}){1,255}$/
/** The ledger takes other texts as well, but no network has such parties. */
const PARTY_ID = /^[^:]+::[^:]+$/
const MICROS_MAX = microsOf(INSTANT_MAX)

/** Above zero, as a decimal text: a JSON number would not be exact. */
export function amountField(body: JsonObject, key: string): Decimal {
  const value = body[key]
  const amount = typeof value === 'string' ? parseDecimal(value) : undefined
  if (amount === undefined) {
    throw badRequest(
      `${key} must be a decimal number below 10^28 with at most ten places as a string, such as "12.5".`,
    )
  }
  if (amount <= 0n) throw badRequest(`${key} must be above zero.`)
  return amount
}

export function partyField(body: JsonObject, key: string): string {
  return checkParty(textField(body, key), key)
}

function checkParty(party: string, key: string): string {
  const fault =
    partyFault(party) ??
    (PARTY_ID.test(party) ? undefined : 'it has a name and a fingerprint, such as bob::1220…')
  if (fault !== undefined) throw badRequest(`${key} must be a party id: ${fault}.`)
  return party
}

/** A time, as microseconds since 1970. */
export function timeField(body: JsonObject, key: string): bigint {
  const micros = wholeNumber(body[key])
  if (micros === undefined || micros > MICROS_MAX) {
    throw badRequest(
      `${key} must be a time in microseconds since 1970 as a whole number, such as 1767225600000000.`,
    )
  }
  return micros
}

/** A time that has not come yet, since what it ends could not be used otherwise. */
export function futureField(body: JsonObject, key: string, nowMicros: bigint): bigint {
  const micros = timeField(body, key)
  if (micros <= nowMicros) throw badRequest(`${key} is in the past; it must lie in the future.`)
  return micros
}

export function bytesField(body: JsonObject, key: string): bigint {
  const bytes = wholeNumber(body[key])
  if (bytes === undefined || bytes === 0n) {
    throw badRequest(`${key} must be a whole number of bytes above zero.`)
  }
  return bytes
}

export function trackingIdField(body: JsonObject, key: string): string {
  return checkTrackingId(textField(body, key), key)
}

export function trackingIdOfPath(request: FastifyRequest): string {
  return checkTrackingId(pathText(request, 'tracking_id'), 'tracking_id')
}

function checkTrackingId(id: string, key: string): string {
  if (id === '' || id.length > TRACKING_ID_LENGTH_MAX || !isStorableText(id)) {
    throw badRequest(
      `${key} must be a text of 1 to ${TRACKING_ID_LENGTH_MAX} characters, such as a UUID.`,
    )
  }
  return id
}

export function descriptionField(body: JsonObject, key: string): string {
  const text = textField(body, key)
  if (text.length > DESCRIPTION_LENGTH_MAX || !isStorableText(text)) {
    throw badRequest(`${key} must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters.`)
  }
  return text
}

export function contractIdOfPath(request: FastifyRequest): string {
  const id = pathText(request, 'contract_id')
  if (!CONTRACT_ID.test(id)) {
    throw badRequest('contract_id must be the id of a contract: an even number of hex digits.')
  }
  return id
}

export function partyOfPath(request: FastifyRequest, name: string): string {
  return checkParty(pathText(request, name), name)
}

/** A size from 1; what is larger than a page gets a page. */
export function pageSizeField(body: JsonObject, key: string, max: number): number {
  const size = wholeNumber(body[key])
  if (size === undefined || size === 0n) {
    throw badRequest(`${key} must be a whole number from 1, such as 50.`)
  }
  return size > BigInt(max) ? max : Number(size)
}

/** As a JSON number that is exact, or as digits in a string. */
function wholeNumber(value: unknown): bigint | undefined {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined
  }
  return typeof value === 'string' && /^\d{1,18}$/.test(value) ? BigInt(value) : undefined
}
