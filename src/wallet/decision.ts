import { type Decimal, printDecimal } from '../values/decimal.ts'

/**
 * What an automation makes of the facts. `what` and `because` are halves of the sentence that an
 * operator reads in a dry run: "would <what>, because <because>".
 */
export type Decision<Plan> = Act<Plan> | Wait

export type Act<Plan> = { kind: 'act'; plan: Plan; what: string; because: string }

export type Wait = {
  kind: 'wait'
  because: string
  /** Something that the operator should mend, such as an empty wallet. */
  isWarning?: true
  /** Worth a line in the log when it begins. */
  isNews?: true
  /** Before this time nothing changes by itself. */
  untilMicros?: bigint
}

/** Without the zeros at the end: 9333.3333333333, 1500, 0.15. */
export function printAmount(amount: Decimal): string {
  return printDecimal(amount).replace(/\.?0+$/, '')
}

/** For sentences about money: 1500.00, rounded half up. */
export function printUsd(amount: Decimal): string {
  const cent = 10n ** 8n
  const cents = (amount + (amount < 0n ? -cent : cent) / 2n) / cent
  const digits = String(cents < 0n ? -cents : cents).padStart(3, '0')
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)} USD`
}

export function printSentence(decision: Decision<unknown>): string {
  return decision.kind === 'act'
    ? `would ${decision.what}, because ${decision.because}`
    : `would do nothing, because ${decision.because}`
}
