import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { badRequest, notFound } from '../http/plain-error.ts'
import { bodyOf, textField } from '../users/request-fields.ts'
import { printDecimal } from '../values/decimal.ts'
import { balanceOf } from './balance.ts'
import { readNetwork } from './network-reader.ts'
import { acceptOffer, createOffer, rejectOffer, withdrawOffer } from './offers.ts'
import { createPreapproval, sendPayment } from './preapprovals.ts'
import { buyTraffic, TRAFFIC_KIND, tap } from './purchases.ts'
import {
  amountField,
  bytesField,
  contractIdOfPath,
  descriptionField,
  futureField,
  pageSizeField,
  partyField,
  timeField,
  trackingIdField,
  trackingIdOfPath,
} from './request-fields.ts'
import type { Wallet } from './wallet.ts'
import { requireWallet, type WalletDoor } from './wallet-door.ts'
import { contractJson, logItemJson, NO_FEES, offerStatusJson, positionJson } from './wallet-json.ts'
import { selectLogPage, selectOfferStatus, selectRequest, selectSequence } from './wallet-store.ts'

/** Entries of one page of the log. */
const PAGE_MAX = 1000

/** /v0/wallet/…: the wallet of the token's user. */
export async function walletRoutes(app: FastifyInstance, door: WalletDoor): Promise<void> {
  const { once } = door
  type Handler = (
    of: { wallet: Wallet; party: string },
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<unknown>
  const own =
    (handler: Handler) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const entered = await door.enter(request)
      const of = { wallet: entered.wallet, party: requireWallet(entered) }
      return handler(of, request, reply)
    }

  app.get('/v0/wallet/user-status', async (request) => {
    const { access } = await door.enter(request)
    const isOnboarded = access.party !== undefined
    return {
      party_id: access.party ?? '',
      user_onboarded: isOnboarded,
      user_wallet_installed: isOnboarded,
      has_featured_app_right: false,
    }
  })

  app.get(
    '/v0/wallet/balance',
    own(async ({ wallet, party }) => {
      const { view } = wallet
      const network = await readNetwork(wallet.network, await wallet.participant.now())
      const balance = balanceOf(view.coins(party), view.lockedCoins(party), network.price)
      return {
        round: Number(network.roundNumber),
        effective_unlocked_qty: printDecimal(balance.free),
        effective_locked_qty: printDecimal(balance.locked),
        total_holding_fees: NO_FEES,
        amulet_price: printDecimal(network.price),
        unlocked_usd: printDecimal(balance.freeUsd),
        locked_usd: printDecimal(balance.lockedUsd),
      }
    }),
  )

  app.get(
    '/v0/wallet/amulets',
    own(async ({ wallet: { view }, party }) => ({
      amulets: view.coins(party).map(positionJson),
      locked_amulets: view.lockedCoins(party).map(positionJson),
    })),
  )

  app.post(
    '/v0/wallet/transactions',
    own(async ({ wallet, party }, request) => {
      const body = bodyOf(request)
      const limit = pageSizeField(body, 'page_size', PAGE_MAX)
      const eventId = textField(body, 'begin_after_id')
      const beforeSequence =
        eventId === '' ? undefined : await selectSequence(wallet.db, { party, eventId })
      if (eventId !== '' && beforeSequence === undefined) {
        throw badRequest('begin_after_id must be the event_id of an entry of this log.')
      }
      const items = await selectLogPage(wallet.db, { party, beforeSequence, limit })
      return { items: items.map(logItemJson) }
    }),
  )

  app.get(
    '/v0/wallet/transfer-offers',
    own(async ({ wallet: { view }, party }) => ({ offers: view.offers(party).map(contractJson) })),
  )

  app.get(
    '/v0/wallet/accepted-transfer-offers',
    own(async ({ wallet: { view }, party }) => ({
      accepted_offers: view.acceptedOffers(party).map(contractJson),
    })),
  )

  app.post(
    '/v0/wallet/transfer-offers',
    own(async ({ wallet, party }, request) => {
      const body = bodyOf(request)
      const offer = {
        sender: party,
        receiver: partyField(body, 'receiver_party_id'),
        amount: amountField(body, 'amount'),
        description: descriptionField(body, 'description'),
        expiresAt: timeField(body, 'expires_at'),
        trackingId: trackingIdField(body, 'tracking_id'),
      }
      // Whoever repeats a request may do so when its time is over.
      const key = { party, kind: 'offer', trackingId: offer.trackingId }
      if ((await selectRequest(wallet.db, key)) === undefined) {
        futureField(body, 'expires_at', await wallet.participant.now())
      }
      return { offer_contract_id: await createOffer(wallet, once, offer) }
    }),
  )

  app.post(
    '/v0/wallet/transfer-offers/:contract_id/accept',
    own(async ({ wallet, party }, request) => {
      const contractId = contractIdOfPath(request)
      const accepted = await acceptOffer(wallet, once, { party, contractId })
      return { accepted_offer_contract_id: accepted }
    }),
  )

  for (const [name, end] of [
    ['reject', rejectOffer],
    ['withdraw', withdrawOffer],
  ] as const) {
    app.post(
      `/v0/wallet/transfer-offers/:contract_id/${name}`,
      own(async ({ wallet, party }, request) => {
        await end(wallet, once, { party, contractId: contractIdOfPath(request) })
        return {}
      }),
    )
  }

  app.post(
    '/v0/wallet/transfer-offers/:tracking_id/status',
    own(async ({ wallet, party }, request) => {
      const trackingId = trackingIdOfPath(request)
      const status = await selectOfferStatus(wallet.db, { sender: party, trackingId })
      if (status === undefined) {
        throw notFound(`You have made no transfer offer with the tracking id ${trackingId}.`)
      }
      return offerStatusJson(status)
    }),
  )

  app.post(
    '/v0/wallet/transfer-preapproval',
    own(async ({ wallet, party }, _request, reply) => {
      const { contractId, isNew } = await createPreapproval(wallet, party)
      const answer = { transfer_preapproval_contract_id: contractId }
      if (isNew) return answer
      const error = `${party} has a preapproval already. It is renewed by itself before it ends.`
      return reply.code(409).send({ error, ...answer })
    }),
  )

  app.post(
    '/v0/wallet/transfer-preapproval/send',
    own(async ({ wallet, party }, request) => {
      const body = bodyOf(request)
      return sendPayment(wallet, once, {
        sender: party,
        receiver: partyField(body, 'receiver_party_id'),
        amount: amountField(body, 'amount'),
        description: descriptionField(body, 'description') || null,
        trackingId: trackingIdField(body, 'deduplication_id'),
      })
    }),
  )

  app.post(
    '/v0/wallet/tap',
    own(async ({ wallet, party }, request) => {
      const body = bodyOf(request)
      const usd = amountField(body, 'amount')
      const trackingId =
        textField(body, 'command_id') === '' ? randomUUID() : trackingIdField(body, 'command_id')
      return { contract_id: await tap(wallet, once, { receiver: party, usd, trackingId }) }
    }),
  )

  app.post(
    '/v0/wallet/buy-traffic-requests',
    own(async ({ wallet, party }, request) => {
      const body = bodyOf(request)
      const wanted = {
        payer: party,
        receiver: partyField(body, 'receiving_validator_party_id'),
        synchronizerId: textField(body, 'domain_id'),
        bytes: bytesField(body, 'traffic_amount'),
        expiresAt: timeField(body, 'expires_at'),
        trackingId: trackingIdField(body, 'tracking_id'),
      }
      const key = { party, kind: TRAFFIC_KIND, trackingId: wanted.trackingId }
      if ((await selectRequest(wallet.db, key)) === undefined) {
        futureField(body, 'expires_at', await wallet.participant.now())
      }
      const { contractId } = await buyTraffic(wallet, once, wanted)
      return { request_contract_id: contractId }
    }),
  )

  app.post(
    '/v0/wallet/buy-traffic-requests/:tracking_id/status',
    own(async ({ wallet, party }, request) => {
      const trackingId = trackingIdOfPath(request)
      const stored = await selectRequest(wallet.db, { party, kind: TRAFFIC_KIND, trackingId })
      if (stored === undefined) {
        throw notFound(`You have bought no traffic with the tracking id ${trackingId}.`)
      }
      if (stored.answer === undefined) return { status: 'created' }
      const { updateId } = JSON.parse(stored.answer) as { updateId: string }
      return { status: 'completed', transaction_id: updateId }
    }),
  )

  app.get(
    '/v0/wallet/traffic-status',
    own(async ({ wallet }) => {
      const { participantId, synchronizerId } = wallet
      const found = await wallet.network.traffic(synchronizerId, participantId)
      const [consumed, limit, purchased] = [
        found?.consumed ?? 0n,
        found?.limit ?? 0n,
        found?.purchased ?? 0n,
      ]
      return {
        member_id: `PAR::${participantId}`,
        domain_id: synchronizerId,
        traffic_status: {
          actual: { total_consumed: Number(consumed), total_limit: Number(limit) },
          target: { total_purchased: Number(purchased) },
        },
        extra_traffic_remainder: Number(limit > consumed ? limit - consumed : 0n),
      }
    }),
  )

  app.get('/v0/feature-support', async () => {
    door.wallet()
    return { token_standard: false, transfer_preapproval_description: true }
  })
}
