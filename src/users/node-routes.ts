import type { FastifyInstance } from 'fastify'
import type { JSONWebKeySet } from 'jose'
import { type Authentication, guard } from './caller.ts'
import { ledgerOpenApi } from './openapi.ts'
import { PARTIES_PAGE_MAX, RIGHTS_PER_USER_MAX, USERS_PAGE_MAX } from './user.ts'

/** The version of the ledger API that official clients accept; not the version of this software. */
export const LEDGER_API_VERSION = '3.5.6'

export type NodeRoutesOptions = {
  authentication: Authentication
  synchronizerId: string
  synchronizerAlias?: string
  /** A second synchronizer of the embedded ledger. */
  secondSynchronizerId?: string
  /** The node's own key set, when it signs development tokens. */
  keySet?: JSONWebKeySet
}

/** What clients ask a node about itself: version, synchronizers, the API's description. */
export const nodeRoutes = async (
  app: FastifyInstance,
  options: NodeRoutesOptions,
): Promise<void> => {
  const { authentication, synchronizerId, secondSynchronizerId, keySet } = options
  const version = {
    version: LEDGER_API_VERSION,
    features: {
      experimental: {
        staticTime: { supported: false },
        commandInspectionService: { supported: false },
      },
      userManagement: {
        supported: true,
        maxRightsPerUser: RIGHTS_PER_USER_MAX,
        maxUsersPageSize: USERS_PAGE_MAX,
      },
      partyManagement: { maxPartiesPageSize: PARTIES_PAGE_MAX },
      // This API has neither streams with checkpoints nor packages, but clients rely on the fields.
      offsetCheckpoint: { maxOffsetCheckpointEmissionDelay: { seconds: 0, nanos: 0 } },
      packageFeature: { maxVettedPackagesPageSize: 0 },
    },
  }
  const synchronizers = {
    connectedSynchronizers: [
      connection(options.synchronizerAlias ?? 'global', synchronizerId),
      ...(secondSynchronizerId === undefined ? [] : [connection('second', secondSynchronizerId)]),
    ],
  }
  const document = JSON.stringify(ledgerOpenApi(LEDGER_API_VERSION), undefined, 2)

  app.get('/v2/version', async () => version)

  app.get('/v2/state/connected-synchronizers', guard(authentication), async () => synchronizers)

  // JSON is YAML too, so whoever expects the one or the other can read it.
  for (const path of ['/openapi.json', '/docs/openapi']) {
    app.get(path, async (_request, reply) =>
      reply.type('application/json; charset=utf-8').send(document),
    )
  }

  if (keySet !== undefined) app.get('/.well-known/jwks.json', async () => keySet)
}

const connection = (synchronizerAlias: string, synchronizerId: string) => ({
  synchronizerAlias,
  synchronizerId,
  permission: 'PARTICIPANT_PERMISSION_SUBMISSION',
})
