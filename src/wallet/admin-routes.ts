import type { FastifyInstance, FastifyRequest } from 'fastify'
import { badRequest } from '../http/plain-error.ts'
import { bodyOf, queryText, textField } from '../users/request-fields.ts'
import { userIdFault } from '../users/user.ts'
import { cancelPreapproval, findPreapproval, noPreapproval } from './preapprovals.ts'
import { partyOfPath } from './request-fields.ts'
import { catchUp, type Wallet } from './wallet.ts'
import { requireWalletAdmin, type WalletDoor } from './wallet-door.ts'
import { contractJson, contractWithStateJson } from './wallet-json.ts'

/** /v0/register, /v0/validator-user, /v0/admin/…: who has a wallet, and preapprovals of this node. */
export async function walletAdminRoutes(app: FastifyInstance, door: WalletDoor): Promise<void> {
  const administer = async (request: FastifyRequest): Promise<Wallet> => {
    const entered = await door.enter(request)
    requireWalletAdmin(entered)
    return entered.wallet
  }

  /** Administrators see every preapproval of this node, receivers their own. */
  const preapprovalOf = async (request: FastifyRequest) => {
    const entered = await door.enter(request)
    const receiver = partyOfPath(request, 'receiver_party')
    if (entered.access.party !== receiver) requireWalletAdmin(entered)
    return { wallet: entered.wallet, receiver }
  }

  app.get('/v0/validator-user', async () => {
    const { operator, users } = door.wallet()
    const acting = (await users.list()).find(({ party }) => party === operator)
    return { party_id: operator, user_name: acting?.userId ?? '', featured: false }
  })

  app.post('/v0/register', async (request) => {
    const userId = await door.userOf(request)
    const { users, operator } = door.wallet()
    return { party_id: userId === undefined ? operator : await users.onboard(userId, 'itself') }
  })

  app.get('/v0/admin/users', async (request) => {
    const { users } = await administer(request)
    return { usernames: (await users.list()).map(({ userId }) => userId) }
  })

  app.post('/v0/admin/users', async (request) => {
    const { users } = await administer(request)
    const userId = checkUserId(textField(bodyOf(request), 'name'))
    return { party_id: await users.onboard(userId, 'administrator') }
  })

  app.post('/v0/admin/users/offboard', async (request) => {
    const { users } = await administer(request)
    await users.offboard(checkUserId(queryText(request, 'username')))
    return {}
  })

  app.get('/v0/admin/transfer-preapprovals', async (request) => {
    const { view, operator, participant } = await administer(request)
    const nowMicros = await participant.now()
    const provided = view
      .preapprovals(operator)
      .filter(({ payload }) => payload.provider === operator && payload.expiresAt > nowMicros)
    return { contracts: provided.map(contractJson) }
  })

  app.get('/v0/admin/transfer-preapprovals/by-party/:receiver_party', async (request) => {
    const { wallet, receiver } = await preapprovalOf(request)
    await catchUp(wallet)
    const found = findPreapproval(wallet, receiver, await wallet.participant.now())
    if (found === undefined) throw noPreapproval(receiver)
    return { transfer_preapproval: contractWithStateJson(found) }
  })

  app.delete('/v0/admin/transfer-preapprovals/by-party/:receiver_party', async (request) => {
    const { wallet, receiver } = await preapprovalOf(request)
    await cancelPreapproval(wallet, receiver)
    return {}
  })
}

function checkUserId(id: string): string {
  const fault = userIdFault(id)
  if (fault !== undefined) throw badRequest(`The user id cannot be used: ${fault}.`)
  return id
}
