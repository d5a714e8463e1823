import { invalidField } from '../users/errors.ts'
import type { JsonObject } from '../users/request-fields.ts'

/** The value if it is an object; `at` is where it stands in the body. */
export function asObject(json: unknown, at: string): JsonObject {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw invalidField(at, 'must be an object')
  }
  return json as JsonObject
}
