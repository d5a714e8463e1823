import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type Clock, systemClock } from './base/clock.ts'
import type { NodeConfig } from './config/node-config.ts'
import type { Db } from './db/db.ts'
import { callOwnRoutes, callRemote, type HttpCall } from './http/call.ts'
import type { Outgoing } from './http/outgoing.ts'
import type { Surroundings } from './listen.ts'
import { appLabels } from './metrics/app-labels.ts'
import { startNodeAutomations, warnOfIdleAutomations } from './open-automations.ts'
import type { NodeLedger } from './open-ledger.ts'
import { scanBase } from './scan/client.ts'
import { openTokenVerifier } from './users/authentication.ts'
import { DEV_AUDIENCE, mintDevToken, openDevKey } from './users/dev-key.ts'
import type { TokenVerifier } from './users/token.ts'
import { measureAutomations } from './wallet/automation-metrics.ts'
import { clientCredentialsSource } from './wallet/client-credentials.ts'
import { openNetworkReader } from './wallet/network-reader.ts'
import { openParticipantClient, type Participant } from './wallet/participant.ts'
import { openRemoteClock } from './wallet/remote-clock.ts'
import { createTrafficReserve } from './wallet/reserve.ts'
import { fixedToken, openRenewedToken, type ServiceToken } from './wallet/service-token.ts'
import { createTurns } from './wallet/turns.ts'
import { openView } from './wallet/view.ts'
import type { Wallet } from './wallet/wallet.ts'
import type { LateWallet } from './wallet/wallet-door.ts'
import { openWalletLog } from './wallet/wallet-log.ts'
import { measureWallet } from './wallet/wallet-metrics.ts'
import { selectWalletUsers } from './wallet/wallet-store.ts'
import { alignConfiguredUsers, openWalletUsers } from './wallet/wallet-users.ts'
import type { WatchedPruning } from './wallet/watch-pruning.ts'

export type NodeWalletOptions = {
  config: NodeConfig
  late: LateWallet
  around: Surroundings
  parts: AsyncDisposableStack
  appDb: Db
  /** Where the record of the node is. */
  participantDb: Db
  /** Another node that shares the app database writes the log. */
  isFollower: boolean
  /** Whether this node is the one that writes, now. */
  isWriter(): boolean
  pruning: WatchedPruning
  embedded: NodeLedger | undefined
  /** The party hint that the participant has kept since its first start. */
  partyHint: string
  participantId: string
  ledgerApp: FastifyInstance
  scanApp: FastifyInstance
  outgoing: Outgoing
}

/** The start of the node waits so long for its wallets; whatever takes longer goes on behind it. */
const FIRST_ATTEMPT_MS = 10_000
const RETRY_MS = 500
const RETRY_MS_MAX = 30_000
/** The user with which a node without a provider comes to its own participant. */
const DEV_SERVICE_USER = 'participant_admin'
const DEV_TOKEN_SECONDS = 3600
/** A change of rights takes this many at a time. */
const RIGHTS_CHUNK = 500

type Connections = {
  participant: Participant
  token: ServiceToken
  network: ReturnType<typeof openNetworkReader>
}

/** Opens the wallets of this node, and keeps trying while participant, provider or scan are away. */
export async function openNodeWallet(options: NodeWalletOptions): Promise<void> {
  const { config, late, around, parts } = options
  const onRun = measureAutomations(around.registry.with(appLabels.validator))
  const warnOfIdle = (why: string) =>
    warnOfIdleAutomations(config, around, { operator: options.partyHint, why })
  if (!config.wallet.enabled) {
    warnOfIdle('enableWallet is false; write enableWallet: true, or remove the automation')
    return
  }
  const log = around.logs.named('annals.wallet')
  late.authenticateBy(await openVerifier(options))
  if (options.embedded === undefined && config.wallet.participantUrl === undefined) {
    warnOfIdle('there are no wallets; name their participant in annals.wallet.participantUrl')
    late.explain(
      'This node has no ledger of its own. Name the participant of the wallets in annals.wallet.participantUrl.',
    )
    return
  }
  let opened: Wallet | undefined
  const { onToken } = measureWallet(around.registry.with(appLabels.validator), () => opened?.view)
  const token = await openToken(options, onToken)
  if (token === undefined) {
    log.warn('there are no wallets: the ledger API secret has no credentials for the participant')
    warnOfIdle('there are no wallets; give the ledger API secret with its credentials')
    late.explain(
      'The validator has no credentials for the participant. Give the ledger API secret with its entries url, client-id and client-secret, or token.',
    )
    return
  }
  parts.defer(() => token.close())
  const connections = connect(options, token)
  const stop = new AbortController()
  let failure: string | undefined = 'The wallets are being opened.'
  let held: AsyncDisposableStack | undefined
  around.health.add({
    name: 'wallet',
    run: () => token.fault() ?? failure ?? opened?.view.fault(),
  })

  async function openForEver(): Promise<void> {
    for (let attempt = 0; !stop.signal.aborted; attempt += 1) {
      await using own = new AsyncDisposableStack()
      try {
        const wallet = await openWallet(options, connections, { own, closing: stop.signal })
        opened = { ...wallet, ...(await startNodeAutomations({ ...options, onRun }, wallet, own)) }
        late.open(opened)
        failure = undefined
        held = own.move()
        return
      } catch (error) {
        if (stop.signal.aborted) return
        failure = `The wallets cannot be opened: ${(error as Error).message}`
        late.explain(failure)
        log.warn({ reason: (error as Error).message }, 'the wallets cannot be opened')
        const pauseMs = Math.min(RETRY_MS * 2 ** attempt, RETRY_MS_MAX)
        await wait(pauseMs, undefined, { signal: stop.signal }).catch(() => {})
      }
    }
  }

  const opening = openForEver()
  parts.defer(async () => {
    late.close()
    stop.abort()
    await opening
    await held?.disposeAsync()
  })
  const patience = wait(FIRST_ATTEMPT_MS, undefined, { signal: stop.signal, ref: false })
  await Promise.race([opening, patience.catch(() => {})])
}

async function openWallet(
  options: NodeWalletOptions,
  { participant, network }: Connections,
  { own, closing }: { own: AsyncDisposableStack; closing: AbortSignal },
): Promise<Wallet> {
  const { config, appDb: db, around } = options
  const log = around.logs.named('annals.wallet')
  const participantId = await participant.participantId()
  const synchronizerId = await participant.synchronizerId()
  const serviceUser = await participant.ownUserId()
  const operator = await participant.ensureParty(options.partyHint)
  const userIds = configuredUsers(config)
  const changed = await alignConfiguredUsers({ db, participant, operator, userIds })
  if (changed.added.length + changed.removed.length > 0) {
    log.info(changed, 'wallet users of the configuration')
  }
  const users = await selectWalletUsers(db)
  const wallets = [...new Set([operator, ...users.map(({ party }) => party)])]
  if (serviceUser !== undefined) {
    for (let at = 0; at < wallets.length; at += RIGHTS_CHUNK) {
      await participant.grantActAs(serviceUser, wallets.slice(at, at + RIGHTS_CHUNK))
    }
  }
  const place = { participantId, migrationId: config.migration.id }
  const view = await openView({
    participant,
    log: openWalletLog({ db, place, isReadOnly: options.isFollower }),
    parties: wallets,
    synchronizerId,
    onError: (error) =>
      log.warn({ reason: (error as Error).message }, 'the wallets do not follow the ledger'),
    onGap: ({ party, from, to }) =>
      log.error(
        { party, from: String(from), to: String(to) },
        'the log of a wallet has a gap: these offsets were pruned before it had them',
      ),
  })
  own.defer(() => view.close())
  await view.waitFor(await participant.ledgerEnd(), closing)
  return {
    db,
    participant,
    network,
    view,
    turns: createTurns(),
    users: openWalletUsers({
      db,
      participant,
      operator,
      serviceUser,
      onAdded: (party, since) => view.add(party, since),
      onRemoved: (party) => view.remove(party),
    }),
    operator,
    participantId,
    synchronizerId,
    migrationId: config.migration.id,
    preapprovalLifetimeMs: config.wallet.preapprovalLifetimeMs,
    clock: await openClock(options, participant, own),
  }
}

/** A node without a provider is somebody's own: its administrator has the operator's wallet. */
function configuredUsers({ wallet, auth }: NodeConfig): readonly string[] {
  if (wallet.users.length > 0 || auth.disabled) return wallet.users
  return auth.validator === undefined ? [DEV_SERVICE_USER] : []
}

async function openClock(
  options: NodeWalletOptions,
  participant: Participant,
  own: AsyncDisposableStack,
): Promise<Clock> {
  if (options.config.wallet.participantUrl === undefined) {
    return options.embedded?.simulated ?? systemClock
  }
  const clock = await openRemoteClock(participant)
  own.defer(() => clock.close())
  return clock
}

function connect(options: NodeWalletOptions, token: ServiceToken): Connections {
  const { config, outgoing, embedded } = options
  const { participantUrl, topUp } = config.wallet
  const network = openNetworkReader(callScan(options))
  const reserve = createTrafficReserve({
    reservedTraffic: topUp?.reservedTraffic,
    async extraTrafficRemainder() {
      const of = [await participant.synchronizerId(), await participant.participantId()] as const
      const status = await network.traffic(...of)
      return status && status.limit - status.consumed
    },
  })
  const participant: Participant = openParticipantClient({
    call:
      participantUrl === undefined
        ? callOwnRoutes(options.ledgerApp)
        : callRemote(outgoing.fetch, participantUrl),
    token: () => token.get(),
    clock: embedded?.ledger ?? systemClock,
    isRemote: participantUrl !== undefined,
    ...(participantUrl === undefined && embedded !== undefined
      ? { waitForOwn: (offset, signal) => embedded.ledger.waitAfter(offset, signal) }
      : {}),
    admit: (priority) => reserve.admit(priority),
  })
  return { participant, token, network }
}

/** The scan that is named; else the own one, or the one of the network that the node has joined. */
function callScan({ config, outgoing, embedded, scanApp }: NodeWalletOptions): HttpCall {
  const joined = config.network?.scan
  const joinedUrl = joined?.mode === 'trust-single' ? joined.url : joined?.seedUrls[0]
  const url = config.wallet.scanUrl ?? (embedded === undefined ? joinedUrl : undefined)
  const base = url === undefined ? undefined : scanBase(url)
  if (base !== undefined) return callRemote(outgoing.fetch, base)
  const call = callOwnRoutes(scanApp)
  return (request) => call({ ...request, path: `/api/scan${request.path}` })
}

/** Undefined when the operator has given no credentials. */
async function openToken(
  { config, outgoing }: NodeWalletOptions,
  onAttempt: (outcome: 'ok' | 'failed') => void,
): Promise<ServiceToken | undefined> {
  const { auth, dataDir, wallet } = config
  const { ledgerApi } = auth
  if (auth.disabled) return fixedToken(undefined)
  if (ledgerApi?.token !== undefined) return fixedToken(ledgerApi.token.reveal())
  const { url, clientId, clientSecret, audience, scope } = ledgerApi ?? {}
  if (url !== undefined && clientId !== undefined && clientSecret !== undefined) {
    const credentials = { url, clientId, clientSecret, audience, scope }
    return openRenewedToken({
      source: clientCredentialsSource(credentials, outgoing.fetch),
      onAttempt,
    })
  }
  if (auth.participant !== undefined || wallet.participantUrl !== undefined) return undefined
  const key = await openDevKey(dataDir)
  const userId = auth.ledgerApiUser ?? DEV_SERVICE_USER
  return openRenewedToken({
    async source() {
      const wish = { userId, ttlSeconds: DEV_TOKEN_SECONDS, audience: DEV_AUDIENCE }
      return { token: await mintDevToken(key, wish), lifetimeMs: DEV_TOKEN_SECONDS * 1000 }
    },
    onAttempt,
  })
}

/** Tokens for the validator's audience, from its provider; else from the node's own key. */
async function openVerifier(options: NodeWalletOptions): Promise<TokenVerifier | 'off'> {
  const { config, around, outgoing, participantId } = options
  const { auth } = config
  if (auth.disabled) return 'off'
  const log = around.logs.named('annals.wallet')
  const common = { participantId, fetch: outgoing.fetch, events: { log } }
  if (auth.validator !== undefined) {
    const { verifier, keySet } = await openTokenVerifier({
      ...common,
      defaultProvider: auth.validator,
    })
    around.health.add({ name: 'validator key set', run: () => keySet.fault() })
    return verifier
  }
  const { keySet } = await openDevKey(config.dataDir)
  const defaultProvider = { keySet, audience: DEV_AUDIENCE }
  return (await openTokenVerifier({ ...common, defaultProvider })).verifier
}
