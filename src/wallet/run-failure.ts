import { ParticipantError } from './participant-error.ts'
import { TrafficReserved } from './reserve.ts'

/** What a failed run of an automation means for whoever watches. */
export type RunFailure = {
  sentence: string
  code: string
  /** Passes by itself, as a rule. */
  isTransient: boolean
  /** Nobody can do anything about it but wait. */
  isQuiet: boolean
}

/** The base rate recovers within minutes. */
const NO_TRAFFIC_CODES = new Set(['SEQUENCER_NOT_ENOUGH_TRAFFIC_CREDIT', 'OUTDATED_TRAFFIC_COST'])

/** Failures of what stands around an automation, and not of what it does. */
const PASSING = new Set(['NetworkAway', 'NoServiceToken', 'TooManyTurns', 'ViewBehind'])

export function describeFailure(error: unknown): RunFailure {
  const { message } = error as Error
  if (error instanceof TrafficReserved) {
    return { sentence: message, code: error.code, isTransient: true, isQuiet: true }
  }
  if (PASSING.has((error as Error).name)) {
    return { sentence: message, code: 'UNAVAILABLE', isTransient: true, isQuiet: false }
  }
  if (error instanceof ParticipantError) {
    const { code, status, isRetryable, isDefinite } = error
    return {
      sentence: message,
      code: code === '' ? (status === 0 ? 'UNAVAILABLE' : String(status)) : code,
      // A contract that somebody else was quicker to use is gone at the next look.
      isTransient: isRetryable || !isDefinite || status === 404 || status === 409,
      isQuiet: NO_TRAFFIC_CODES.has(code),
    }
  }
  return { sentence: message, code: 'INTERNAL', isTransient: false, isQuiet: false }
}
