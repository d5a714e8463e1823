import { int64, numeric, party, record, timestamp, type ValueOf } from '../values/value-type.ts'
import { roundType } from './coin.ts'
import { type Choice, ChoiceRefusal, defineChoice, defineTemplate, type Steps } from './template.ts'

/** The open round: while it lasts, the coin has this price in USD. */

export const openRound = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.Round:OpenMiningRound',
  payload: record({
    dso: party,
    round: roundType,
    amuletPrice: numeric,
    opensAt: timestamp,
    targetClosesAt: timestamp,
    tickDuration: record({ microseconds: int64 }),
  }),
  signatories: ({ dso }) => [dso],
  observers: () => [],
  ensure: ({ amuletPrice }) =>
    amuletPrice > 0n ? undefined : 'The price of the coin must be above zero.',
  isPublic: true,
})

export type OpenRoundPayload = ValueOf<(typeof openRound)['payload']>

/** Rounds overlap: each is open for this many ticks. */
const TICKS_OPEN = 2n

const advanceArgument = record({ amuletPrice: numeric })

/** Closes this round and opens the one after the newest, with the price that was agreed on. */
export const advanceRound = defineChoice(openRound, {
  name: 'OpenMiningRound_Advance',
  consuming: true,
  argument: advanceArgument,
  result: record({ openRound: roundType }),
  controllers: ({ dso }) => [dso],
  async run(steps: Steps, { payload }, { amuletPrice }) {
    const number = payload.round.number + 1n
    await openNextRound(steps, { ...payload, number, amuletPrice })
    return { openRound: { number } }
  },
})

export const openRoundChoices: Choice<OpenRoundPayload, unknown, unknown>[] = [advanceRound]

export function openNextRound(
  steps: Steps,
  next: Pick<OpenRoundPayload, 'dso' | 'amuletPrice' | 'tickDuration'> & { number: bigint },
): Promise<string> {
  const tick = next.tickDuration.microseconds
  return steps.create(openRound, {
    dso: next.dso,
    round: { number: next.number },
    amuletPrice: next.amuletPrice,
    opensAt: steps.nowMicros,
    targetClosesAt: steps.nowMicros + TICKS_OPEN * tick,
    tickDuration: next.tickDuration,
  })
}

/** The round that a step names, which must be the network's and have begun. */
export async function fetchOpenRound(
  steps: Steps,
  contractId: string,
  dso: string,
): Promise<OpenRoundPayload> {
  const round = await steps.fetch(openRound, contractId)
  if (round.dso !== dso) throw new ChoiceRefusal('The open round belongs to another network.')
  if (round.opensAt > steps.nowMicros) {
    throw new ChoiceRefusal(`Round ${round.round.number} is not open yet.`)
  }
  return round
}
