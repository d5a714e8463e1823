import type { FastifyRequest } from 'fastify'
import { badRequest } from '../http/ledger-error.ts'
import { invalidArgument } from './errors.ts'

/**
 * Reading requests: JSON bodies whatever their Content-Type, fields with the protocol's defaults
 * (absent and `null` are the same), query parameters that may stand only once. Unknown fields are
 * ignored, wrong types are refused.
 */
export type JsonObject = { readonly [key: string]: unknown }

export const bodyOf = (request: FastifyRequest): JsonObject => {
  const raw = request.body
  return parseBody(Buffer.isBuffer(raw) ? raw.toString('utf8') : typeof raw === 'string' ? raw : '')
}

export const parseBody = (text: string): JsonObject => {
  if (text.trim() === '') throw badRequest('The request needs a JSON body, and it is empty.')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('The request body is not valid JSON.')
  }
  if (!isObject(value)) throw badRequest('The request body must be a JSON object.')
  return value
}

export const textField = (object: JsonObject, key: string): string => {
  const value = own(object, key) ?? ''
  if (typeof value !== 'string') throw wrongType(key, 'a string', value)
  return value
}

export const flagField = (object: JsonObject, key: string): boolean => {
  const value = own(object, key) ?? false
  if (typeof value !== 'boolean') throw wrongType(key, 'true or false', value)
  return value
}

export const listField = (object: JsonObject, key: string): readonly unknown[] => {
  const value = own(object, key) ?? []
  if (!Array.isArray(value)) throw wrongType(key, 'a list', value)
  return value
}

/** A message field: absent stays undefined, because some operations ask whether it was given. */
export const objectField = (object: JsonObject, key: string): JsonObject | undefined => {
  const value = own(object, key) ?? undefined
  if (value === undefined) return undefined
  if (!isObject(value)) throw wrongType(key, 'an object', value)
  return value
}

export const textMapField = (object: JsonObject, key: string): Map<string, string> => {
  const map = new Map<string, string>()
  for (const [name, value] of Object.entries(objectField(object, key) ?? {})) {
    if (typeof value !== 'string') throw wrongType(`${key}.${name}`, 'a string', value)
    map.set(name, value)
  }
  return map
}

/** The paths of `updateMask`, or undefined when the request has no mask. */
export const maskField = (object: JsonObject): string[] | undefined => {
  const mask = objectField(object, 'updateMask')
  if (mask === undefined) return undefined
  return listField(mask, 'paths').map((path) => {
    if (typeof path !== 'string') throw wrongType('updateMask.paths', 'a list of strings', path)
    return path
  })
}

/** A query parameter; the empty string when absent. */
export const queryText = (request: FastifyRequest, name: string): string => {
  const value = (request.query as Record<string, unknown>)[name] ?? ''
  if (typeof value !== 'string') {
    throw badRequest(`The query parameter ${name} may stand only once.`)
  }
  return value
}

export const queryList = (request: FastifyRequest, name: string): string[] => {
  const value = (request.query as Record<string, unknown>)[name] ?? []
  return Array.isArray(value) ? value.map(String) : [String(value)]
}

/** The page size asked for; undefined when absent or 0, which both mean the largest. */
export const queryPageSize = (request: FastifyRequest): number | undefined => {
  const text = queryText(request, 'pageSize')
  if (text === '') return undefined
  const size = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(size >= -(2 ** 31) && size < 2 ** 31)) {
    throw badRequest('The query parameter pageSize must be a whole number of 32 bits.')
  }
  if (size < 0) throw invalidArgument('page size must not be negative')
  return size === 0 ? undefined : size
}

export const pathText = (request: FastifyRequest, name: string): string =>
  String((request.params as Record<string, unknown>)[name] ?? '')

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Names like `constructor` must not reach through to the prototype. */
const own = (object: JsonObject, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

const wrongType = (key: string, wanted: string, found: unknown) => {
  const kind = Array.isArray(found) ? 'a list' : found === null ? 'null' : typeof found
  return badRequest(`The field ${key} must be ${wanted}; found ${kind}.`)
}
