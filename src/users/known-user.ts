import { permissionDenied, userNotFound } from './errors.ts'
import type { User } from './user.ts'

export const requireUser = (user: User | undefined, operation: string, userId: string): User => {
  if (user === undefined) throw userNotFound(operation, userId)
  return user
}

/** A user of another provider is refused without saying where it is. */
export const requireHome = (user: User, identityProviderId: string): User => {
  if (user.identityProviderId !== identityProviderId) {
    throw permissionDenied(`user ${user.id} belongs to another identity provider`)
  }
  return user
}
