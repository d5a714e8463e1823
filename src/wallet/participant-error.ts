import { NoAnswer } from '../http/call.ts'

/** A call to the participant that did not succeed. */
export class ParticipantError extends Error {
  override name = 'ParticipantError'
  /** 0 when no answer came. */
  readonly status: number
  /** The ledger's own code, such as `DUPLICATE_COMMAND`; empty when no answer came. */
  readonly code: string
  /** Whether it is certain that the command has had no effect; if not, it may have been carried out. */
  readonly isDefinite: boolean
  /** Whether the same call may succeed later. */
  readonly isRetryable: boolean
  /** Where the command was accepted before, for `DUPLICATE_COMMAND`. */
  readonly completionOffset: bigint | undefined

  constructor(
    message: string,
    of: {
      status: number
      code?: string
      isDefinite: boolean
      isRetryable: boolean
      completionOffset?: bigint
    },
  ) {
    super(message)
    this.status = of.status
    this.code = of.code ?? ''
    this.isDefinite = of.isDefinite
    this.isRetryable = of.isRetryable
    this.completionOffset = of.completionOffset
  }
}

/** No answer came, so nobody knows what has become of the call. */
export function noAnswer(error: unknown): unknown {
  if (!(error instanceof NoAnswer)) return error
  const sentence = `The participant cannot be reached: ${error.message}`
  return new ParticipantError(sentence, { status: 0, isDefinite: false, isRetryable: true })
}

type ErrorBody = {
  code?: string
  cause?: string
  context?: Record<string, string>
  retryInfo?: string | null
}

/** The ledger's refusal. A 5xx says nothing about whether the command was carried out. */
export function refusalOf(status: number, body: string): ParticipantError {
  const { code = '', cause = '', context = {}, retryInfo } = parse(body)
  const isRefused = status >= 400 && status < 500
  const offset = context.completion_offset
  const isGiven = offset !== undefined && /^\d{1,18}$/.test(offset)
  return new ParticipantError(sentenceOf(status, code, cause), {
    status,
    code,
    isDefinite: isRefused,
    isRetryable: !isRefused || (retryInfo ?? null) !== null,
    ...(code === 'DUPLICATE_COMMAND' && isGiven ? { completionOffset: BigInt(offset) } : {}),
  })
}

function sentenceOf(status: number, code: string, cause: string): string {
  if (status === 401) {
    return 'The participant does not accept the token of the validator. Check the ledger API secret: its audience, its client and its user.'
  }
  if (status === 403) {
    return 'The participant lets the user of the validator do too little. Give its user the right ParticipantAdmin.'
  }
  return cause === '' || code === 'NA' ? `The participant answered with status ${status}.` : cause
}

function parse(body: string): ErrorBody {
  try {
    return (JSON.parse(body) as ErrorBody | null) ?? {}
  } catch {
    return {}
  }
}
