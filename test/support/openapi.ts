import assert from 'node:assert/strict'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fastify, { type FastifyInstance } from 'fastify'

export type OpenApiDocument = {
  openapi: string
  info: { version: string }
  servers: { url: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, OpenApiOperation>>
  components: { schemas: Record<string, unknown> }
}
export type OpenApiOperation = {
  operationId: string
  tags: string[]
  deprecated?: boolean
  responses: Record<string, { content?: Record<string, unknown> }>
}
export type Answer = { method: string; path: string; status: number; body: string; type: string }

/** A function that fails unless an answer is one that the document gives for the operation. */
export function answerChecker(document: OpenApiDocument): (answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  ajv.addSchema(document, 'api')
  const compiled = new Map<string, ValidateFunction>()
  const validatorOf = (pointer: string): ValidateFunction => {
    const validator = compiled.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` })
    compiled.set(pointer, validator)
    return validator
  }
  const paths = Object.keys(document.paths).toSorted(
    (one, other) => Number(one.includes('{')) - Number(other.includes('{')),
  )
  return ({ method, path, status, body, type }) => {
    const template = paths.find((candidate) => patternOf(candidate).test(path))
    const operation = document.paths[template ?? '']?.[method.toLowerCase()]
    const mediaType = type.split(';')[0] ?? ''
    const response = operation?.responses[status]
    if (response !== undefined && response.content === undefined) {
      assert.equal(body, '', `${method} ${path} answers ${status} with a body`)
      return
    }
    // A path or method that the document does not have is refused in the same shape.
    const isKnown = response?.content?.[mediaType] !== undefined
    assert.ok(
      isKnown || operation === undefined || status === 404,
      `${method} ${path} answers ${status} ${type}, which the document does not list`,
    )
    if (isKnown && mediaType !== 'application/json') return
    const pointer = isKnown
      ? `/paths/${escaped(template as string)}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`
      : '/components/schemas/Error'
    const validate = validatorOf(pointer)
    assert.ok(
      validate(JSON.parse(body)),
      `${method} ${path} answers ${status} against the document: ${JSON.stringify(validate.errors)}\n${body.slice(0, 2000)}`,
    )
  }
}

/** `GET /v0/things/{id}` for everything that the document has. */
export function documentedOperations(document: Pick<OpenApiDocument, 'paths'>): string[] {
  return Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    .toSorted()
}

/** The same for everything that is really served. */
export async function registeredOperations(
  register: (app: FastifyInstance) => Promise<void>,
): Promise<string[]> {
  const found: string[] = []
  const app = fastify({ exposeHeadRoutes: false })
  app.addHook('onRoute', ({ method, url }) => {
    found.push(`${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`)
  })
  await register(app)
  return found.toSorted()
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`)
}

function escaped(path: string): string {
  return encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'))
}
