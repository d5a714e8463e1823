import { invalidArgument, invalidField, missingField } from '../users/errors.ts'
import { type JsonObject, listField, textField } from '../users/request-fields.ts'
import { partyFault, userIdFault } from '../users/user.ts'

// Ids in requests about the ledger. They are stored and shown to others, so each has its characters
// and its length before anything else is done with it.

const LEDGER_STRING = /^[a-zA-Z0-9._:\-#/ ]{1,255}$/
const CONTRACT_ID = /^(?:[0-9a-f]{2}){1,255}$/

/** An id that the client makes: of a command, a submission, a workflow; the empty string when absent. */
export function idField(object: JsonObject, key: string): string {
  const id = textField(object, key)
  if (id !== '' && !LEDGER_STRING.test(id)) {
    throw invalidField(
      snakeCase(key),
      'must have at most 255 characters: letters, digits, blanks and ._:-#/',
    )
  }
  return id
}

/** Who says that it submits; the empty string when absent. */
export function userIdField(object: JsonObject): string {
  const id = textField(object, 'userId')
  const fault = id === '' ? undefined : userIdFault(id)
  if (fault !== undefined) throw invalidField('user_id', fault)
  return id
}

export function contractIdField(object: JsonObject): string {
  const id = textField(object, 'contractId')
  if (id === '') throw missingField('contract_id')
  if (!CONTRACT_ID.test(id)) {
    throw invalidField('contract_id', 'must be the id of a contract, in hexadecimal digits')
  }
  return id
}

export function partyList(object: JsonObject, key: string): string[] {
  return listField(object, key).map((item) => {
    if (typeof item !== 'string' || item === '') {
      throw invalidField(key, 'must be a list of parties')
    }
    return requireParty(item)
  })
}

export function requireParty(party: string): string {
  const fault = partyFault(party)
  if (fault !== undefined) throw invalidArgument(fault)
  return party
}

/** Offsets are whole numbers, as numbers or as text. */
export function readOffset(object: JsonObject, key: string): bigint | undefined {
  const value = object[key] ?? undefined
  if (value === undefined || value === '') return undefined
  const digits = typeof value === 'number' || typeof value === 'string' ? String(value) : ''
  if (!/^\d{1,18}$/.test(digits)) throw invalidField(key, 'must be an offset, such as 42')
  return BigInt(digits)
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
