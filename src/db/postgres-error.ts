import { DatabaseUnavailable, SqlError } from './db-error.ts'

// Operator intervention and connection failures (classes 08 and 57P of the SQLSTATE table), and the
// lack of a free connection. 57014, a cancelled statement, is the statement's own fault.
const unavailableStates = /^(08|57P|53300)/

// Answers of the operating system that mean: there is no server to talk to now.
const unavailableSystemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOENT',
])

// What `pg` says, without a code, about a connection that was lost or could not be had in time.
const unavailableMessages =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|not queryable|after calling end/i

/** An error of `pg` as ours; anything else is passed on as it is. */
export function toPostgresError(error: unknown, sql?: string): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseUnavailable) return error
  if (isUnavailable(error)) {
    return new DatabaseUnavailable(
      `The PostgreSQL server does not answer: ${reason(error)}. Check that it runs and can be reached.`,
      { cause: error },
    )
  }
  // The error of the driver also carries the values of the row, which may be secret.
  const state = sqlState(error)
  return state === undefined ? error : new SqlError(error.message, { code: state, sql })
}

/** Whether the server itself spoke, if only to refuse. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && sqlState(error) !== undefined && !isUnavailable(error)
}

function isUnavailable(error: Error): boolean {
  const state = sqlState(error)
  if (state !== undefined) return unavailableStates.test(state)
  const { code } = error as NodeJS.ErrnoException
  if (code !== undefined) return unavailableSystemCodes.has(code)
  return unavailableMessages.test(error.message)
}

function sqlState(error: Error): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}

// A refusal at every address of a host name comes as an error without a message of its own.
function reason(error: Error): string {
  return error.message || (error as NodeJS.ErrnoException).code || error.name
}
