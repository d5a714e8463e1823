import type { FastifyInstance, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { badRequest, PlainError } from '../http/plain-error.ts'
import type { Contract } from '../ledger/contract.ts'
import { type Authentication, requireAdmin } from '../users/caller.ts'
import {
  bodyOf,
  type JsonObject,
  parseBody,
  queryText,
  textField,
} from '../users/request-fields.ts'
import { isStorableText } from '../users/user.ts'
import { printInThrees } from '../values/instant.ts'
import { sponsorOpenApi } from './openapi.ts'
import type { Invitation, Sponsor } from './sponsor.ts'

/** The port is open before the ledger is, so these are asked for with every request. */
export type SponsorRoutesOptions = {
  sponsor(): Sponsor | undefined
  authentication(): Authentication | undefined
  softwareVersion: string
  /** When this version was made, ISO-8601. */
  releasedAt: string
}

/** As the administration of the deployed network asks for: 48 hours. */
const EXPIRES_IN_SECONDS = 172_800
/** Longer than any invitation makes sense, and far below the end of time. */
const EXPIRES_IN_SECONDS_MAX = 10 * 366 * 86_400
/** What a party id can begin with. */
const HINT = /^[A-Za-z0-9_-]{1,185}$/
/** Contact points are addresses; versions a few characters. Both end up in the public history. */
const METADATA_LENGTH_MAX = 256
const SECRET_LENGTH_MAX = 4096
const LICENCES_LIMIT_MAX = 1000

/** The sponsor's part of the SV protocol; register under `/api/sv`. */
export async function sponsorRoutes(
  app: FastifyInstance,
  options: SponsorRoutesOptions,
): Promise<void> {
  const sponsor = () => started(options.sponsor())
  const admin: { onRequest: onRequestAsyncHookHandler } = {
    onRequest: async (request) => {
      requireAdmin(await started(options.authentication()).authenticate(request))
    },
  }

  const document = sponsorOpenApi(options.softwareVersion)
  app.get('/openapi.json', async () => document)

  app.get('/version', async () => ({
    version: options.softwareVersion,
    commit_ts: options.releasedAt,
  }))

  app.post('/v0/onboard/validator', async (request, reply) => {
    const body = bodyOf(request)
    await sponsor().admit({
      partyId: textField(body, 'party_id'),
      secret: boundedText(body, 'secret', SECRET_LENGTH_MAX),
      version: boundedText(body, 'version', METADATA_LENGTH_MAX),
      contactPoint: boundedText(body, 'contact_point', METADATA_LENGTH_MAX),
    })
    return reply.send()
  })

  app.post('/v0/devnet/onboard/validator/prepare', async (_request, reply) => {
    const { secret } = await sponsor().issueForDevNet()
    return reply.type('text/plain').send(secret)
  })

  app.post('/v0/admin/validator/onboarding/prepare', admin, async (request) => {
    const body = optionalBody(request)
    const { secret, invitation } = await sponsor().issue({
      expiresInSeconds: readExpiry(body),
      partyHint: readHint(body),
    })
    return { secret, ...invitationToJson(invitation) }
  })

  app.get('/v0/admin/validator/onboarding/ongoing', admin, async () => ({
    ongoing_validator_onboardings: (await sponsor().ongoing()).map(invitationToJson),
  }))

  app.post('/v0/admin/validator/onboarding/revoke', admin, async (request) => {
    const body = bodyOf(request)
    const contractId = textField(body, 'contract_id')
    const secret = boundedText(body, 'secret', SECRET_LENGTH_MAX)
    if ((contractId === '') === (secret === '')) {
      throw badRequest('Name the secret to revoke by contract_id or by secret, one of the two.')
    }
    return invitationToJson(await sponsor().revoke(contractId === '' ? { secret } : { contractId }))
  })

  app.get('/v0/admin/validator/licenses', admin, async (request) => {
    const limit = readLimit(queryText(request, 'limit'))
    const after = queryText(request, 'after')
    const found = await sponsor().licences({ after, limit: limit + 1 })
    const last = found.length > limit ? found[limit - 1] : undefined
    return {
      validator_licenses: found.slice(0, limit).map(contractToJson),
      ...(last === undefined ? {} : { next_page_token: last.contractId }),
    }
  })
}

function started<T>(part: T | undefined): T {
  if (part !== undefined) return part
  throw new PlainError(503, 'The node is starting; try again in a few seconds.', {
    'retry-after': '2',
  })
}

/** Without the secret: of that only the hash is known. */
function invitationToJson(invitation: Invitation) {
  const { candidateSecret, partyHint } = invitation.payload
  const contract = contractToJson(invitation)
  const { expiresAt } = contract.payload as { expiresAt: string }
  return {
    contract,
    secret_sha256: candidateSecret,
    expires_at: expiresAt,
    ...(partyHint === null ? {} : { party_hint: partyHint }),
  }
}

function contractToJson(contract: Omit<Contract, 'payload'> & { payload: unknown }) {
  return {
    template_id: contract.entry.id,
    contract_id: contract.contractId,
    payload: contract.entry.template.payload.toJson(contract.payload),
    created_event_blob: '',
    created_at: printInThrees(contract.createdAt),
  }
}

function optionalBody(request: FastifyRequest): JsonObject {
  const { body } = request
  return Buffer.isBuffer(body) && body.length > 0 ? bodyOf(request) : parseBody('{}')
}

function boundedText(body: JsonObject, field: string, max: number): string {
  const text = textField(body, field)
  if (text.length <= max && isStorableText(text)) return text
  throw badRequest(`${field} must be text of at most ${max} characters.`)
}

function readExpiry(body: JsonObject): number {
  const { expires_in: seconds = EXPIRES_IN_SECONDS } = body
  const isGood =
    Number.isInteger(seconds) && Number(seconds) >= 1 && Number(seconds) <= EXPIRES_IN_SECONDS_MAX
  if (isGood) return Number(seconds)
  throw badRequest(
    `expires_in must be a whole number of seconds from 1 to ${EXPIRES_IN_SECONDS_MAX}; leave it out for 48 hours.`,
  )
}

function readHint(body: JsonObject): string | undefined {
  const hint = textField(body, 'party_hint')
  if (hint === '') return undefined
  if (HINT.test(hint)) return hint
  throw badRequest(
    'party_hint must be letters, digits, - and _ only, such as acme-validator-1, and at most 185 of them.',
  )
}

function readLimit(text: string): number {
  if (text === '') return LICENCES_LIMIT_MAX
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= LICENCES_LIMIT_MAX) {
    return Number(text)
  }
  throw badRequest(`limit must be a whole number from 1 to ${LICENCES_LIMIT_MAX}.`)
}
