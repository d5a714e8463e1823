import type { FastifyInstance } from 'fastify'
import type { Db } from '../db/db.ts'
import { type Authentication, actorOf, guard, guardChange, requireAdmin } from './caller.ts'
import { invalidArgument, missingField } from './errors.ts'
import {
  createProvider,
  deleteProvider,
  getProvider,
  listProviders,
  updateProvider,
} from './idps.ts'
import {
  bodyOf,
  flagField,
  type JsonObject,
  maskField,
  objectField,
  pathText,
  textField,
} from './request-fields.ts'
import type { IdentityProvider } from './user.ts'

/** /v2/idps…: for participant admins alone. */
export const idpsRoutes = async (
  app: FastifyInstance,
  { db, authentication }: { db: Db; authentication: Authentication },
): Promise<void> => {
  const admin = guard(authentication, requireAdmin)
  const changing = guardChange(authentication, requireAdmin)

  app.get('/v2/idps', admin, async () => ({ identityProviderConfigs: await listProviders(db) }))

  app.post('/v2/idps', changing, async (request) => {
    const json = objectField(bodyOf(request), 'identityProviderConfig')
    if (json === undefined) throw missingField('identity_provider_config')
    const provider = await createProvider(db, actorOf(request), providerOf(json))
    return { identityProviderConfig: provider }
  })

  app.get('/v2/idps/:idpId', admin, async (request) => ({
    identityProviderConfig: await getProvider(db, pathText(request, 'idpId')),
  }))

  app.patch('/v2/idps/:idpId', changing, async (request) => {
    const body = bodyOf(request)
    const json = objectField(body, 'identityProviderConfig')
    const mask = maskField(body)
    const id = pathText(request, 'idpId')
    if (json === undefined) {
      throw invalidArgument(`${id} does not match idp in body: there is none`)
    }
    const provider = providerOf(json)
    if (provider.identityProviderId !== id) {
      throw invalidArgument(`${id} does not match idp in body: "${provider.identityProviderId}"`)
    }
    const updated = await updateProvider(db, actorOf(request), { provider, mask })
    return { identityProviderConfig: updated }
  })

  app.delete('/v2/idps/:idpId', changing, async (request) => {
    await deleteProvider(db, actorOf(request), pathText(request, 'idpId'))
    return {}
  })
}

const providerOf = (json: JsonObject): IdentityProvider => ({
  identityProviderId: textField(json, 'identityProviderId'),
  isDeactivated: flagField(json, 'isDeactivated'),
  issuer: textField(json, 'issuer'),
  jwksUrl: textField(json, 'jwksUrl'),
  audience: textField(json, 'audience'),
})
