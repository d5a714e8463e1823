import type { FastifyReply, FastifyRequest } from 'fastify'
import { notFound, PlainError, plainErrorHandler } from '../http/plain-error.ts'
import { tokenOf } from '../users/caller.ts'
import type { TokenVerifier } from '../users/token.ts'
import { createOnce, type Once } from './once.ts'
import { ParticipantError } from './participant-error.ts'
import type { Wallet } from './wallet.ts'
import type { Access } from './wallet-users.ts'

/**
 * The way from a request to a wallet. The port is open before there are wallets, so that they are looked
 * for with every request.
 */
export type WalletDoor = {
  readonly once: Once
  /** Refuses with a sentence while there are none. */
  wallet(): Wallet
  /** The user of the token, and what it may do. */
  enter(request: FastifyRequest): Promise<Entered>
  /** The user of the token; undefined where authentication is off. */
  userOf(request: FastifyRequest): Promise<string | undefined>
}

export type Entered = { wallet: Wallet; access: Access }

export type LateWallet = WalletDoor & {
  open(wallet: Wallet): void
  /** Who verifies tokens: nobody yet, nobody at all, or this. */
  authenticateBy(verifier: TokenVerifier | 'off'): void
  /** Says why there are no wallets. */
  explain(reason: string): void
  close(): void
}

const RETRY_AFTER = { 'retry-after': '5' }

export function createLateWallet(options: { isEnabled: boolean }): LateWallet {
  let opened: Wallet | undefined
  let verifier: TokenVerifier | 'off' | undefined
  let reason = 'The node is starting.'

  function wallet(): Wallet {
    if (!options.isEnabled) {
      throw notFound(
        'The wallet is switched off on this node. Set enableWallet to true in the validator values and restart it.',
      )
    }
    if (opened === undefined) {
      throw new PlainError(503, `There are no wallets at the moment. ${reason}`, RETRY_AFTER)
    }
    return opened
  }

  async function userOf(request: FastifyRequest): Promise<string | undefined> {
    wallet()
    if (verifier === 'off') return undefined
    if (verifier === undefined) throw new PlainError(503, 'The node is starting.', RETRY_AFTER)
    const { verified } = await verifier.verify(tokenOf(request.raw.rawHeaders))
    return verified.userId
  }

  return {
    once: createOnce(),
    wallet,
    userOf,
    async enter(request) {
      const userId = await userOf(request)
      const entered = wallet()
      if (userId !== undefined) {
        return { wallet: entered, access: await entered.users.access(userId) }
      }
      const { operator: party } = entered
      return { wallet: entered, access: { userId: '', party, isBarred: false, isAdmin: true } }
    },
    open(next) {
      opened = next
    },
    authenticateBy(next) {
      verifier = next
    },
    explain(sentence) {
      reason = sentence
    },
    close() {
      opened = undefined
      reason = 'The node is stopping.'
    },
  }
}

/** The party of the caller's own wallet. */
export function requireWallet({ access }: Entered): string {
  if (access.party !== undefined) return access.party
  if (access.isBarred) {
    throw new PlainError(
      403,
      `The user ${access.userId} may no longer act as the party of its wallet: it is deactivated, or has lost CanActAs. An administrator of the participant gives that back.`,
    )
  }
  throw notFound(
    `The user ${access.userId} has no wallet on this node. POST /api/validator/v0/register gives it one.`,
  )
}

export function requireWalletAdmin({ access }: Entered): void {
  if (access.isAdmin) return
  throw new PlainError(
    403,
    `The user ${access.userId} does not administer this node. Name it in validatorWalletUsers, or give it the right ParticipantAdmin.`,
  )
}

/** The error handler of these routes: what participant and scan refuse becomes a sentence, too. */
export function walletErrorHandler(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return plainErrorHandler(toPlainError(error), request, reply)
}

function toPlainError(error: unknown): unknown {
  if (error instanceof ParticipantError) {
    const { status, code, message, isRetryable } = error
    if (code === 'UNKNOWN_INFORMEES') {
      return new PlainError(404, 'The network does not know the receiver. Check its party id.')
    }
    // Our own token or our own rights: nothing that the client could mend.
    const isOurs = status === 0 || status >= 500 || status === 401 || status === 403
    if (isOurs) return new PlainError(503, message, RETRY_AFTER)
    return new PlainError(status === 404 || status === 409 ? status : 400, message, {
      ...(isRetryable ? RETRY_AFTER : {}),
    })
  }
  const { name, message } = error as Error
  if (name === 'NetworkAway' || name === 'NoServiceToken') {
    return new PlainError(503, message, RETRY_AFTER)
  }
  if (name === 'TooManyTurns' || name === 'TrafficReserved') {
    return new PlainError(429, message, RETRY_AFTER)
  }
  return error
}
