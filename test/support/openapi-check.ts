import assert from 'node:assert/strict'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { ledgerOpenApi } from '../../src/users/openapi.ts'

type Answer = { method: string; url: string; status: number; body: string }

/** A function that fails unless an answer is what the OpenAPI document says of its operation. */
export function openApiChecker(): (answer: Answer) => void {
  const document = ledgerOpenApi('test')
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  ajv.addSchema(document, 'api')
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method, path, pattern: patternOf(path) })),
  )
  const compiled = new Map<string, ValidateFunction>()
  const validatorOf = (pointer: string): ValidateFunction => {
    const validator = compiled.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` })
    compiled.set(pointer, validator)
    return validator
  }
  return ({ method, url, status, body }) => {
    const path = (url.split('?', 1)[0] ?? '').replaceAll(/\/+/g, '/').replace(/\/$/, '')
    const route = routes
      .filter((candidate) => candidate.method === method.toLowerCase())
      .sort((a, b) => Number(a.path.includes('{')) - Number(b.path.includes('{')))
      .find((candidate) => candidate.pattern.test(path))
    const pointer =
      route === undefined || status !== 200
        ? '/components/schemas/LedgerError'
        : `/paths/${escaped(route.path)}/${route.method}/responses/200/content/application~1json/schema`
    const validate = validatorOf(pointer)
    assert.ok(
      validate(JSON.parse(body)),
      `${method} ${url} answers against the document: ${JSON.stringify(validate.errors)}\n${body}`,
    )
  }
}

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`)

const escaped = (path: string): string =>
  encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'))
