import { arrangeAffairs } from './affairs.ts'
import { arrangePayments } from './payments.ts'
import { foundWorld } from './world.ts'

const SEED = 'annals example history 1'
const ROUNDS_BEFORE_MIGRATION = 14
const ROUNDS_AFTER_MIGRATION = 10
const PAUSE_MICROS = 240_000_000
const OFFER_ENDINGS = ['accept', 'reject', 'accept', 'withdraw', 'expire'] as const

/** Of these last updates of migration 0, two of every three share their record time with one of migration 1. */
const OVERLAPPING_UPDATES = 24

/**
 * The story: a DSO founds a coin network with two validators. Alice, Bob and Carol tap coins, offer and send them;
 * a treasury signs its transactions elsewhere and uses the token standard. Some contracts visit an exchange's own
 * synchronizer and come back. Then the network migrates, with record times that overlap, and life goes on.
 */
export function tellStory(): string[] {
  const world = foundWorld(SEED)
  const { ledger, parties, people, person, purse, tap, advanceRounds, reportActivity } = world
  const { bob, treasury, harbor, alpine } = parties
  const { offerAnd, sendByTokenStandard, preapprove, changeCoin } = arrangePayments(world)
  const { fetchRules, rewardApp, nameAndVote, visitExchange, showValues } = arrangeAffairs(world)

  function liveThrough(round: number): void {
    advanceRounds(round % 6 === 5)
    reportActivity(round % 2 === 0 ? harbor : alpine)
    for (const owner of people) {
      if (purse(owner).length < 3) tap(owner, `${20 + round}.0000000000`)
    }
    offerAnd(OFFER_ENDINGS[round % OFFER_ENDINGS.length] ?? 'accept', round)
    offerAnd(round % 2 === 0 ? 'accept' : 'reject', round + 1)
    if (round % 3 === 0) sendByTokenStandard(person(round % 2), '0.5000000000')
    if (round % 4 === 1) rewardApp(round)
    if (round % 4 === 2) preapprove(person(round))
    if (round % 4 === 3) nameAndVote(round)
    if (round % 2 === 0) fetchRules(round % 8 === 4)
    if (round % 6 === 4) visitExchange(person(round), round % 12 === 10)
    ledger.wait(PAUSE_MICROS)
  }

  tap(treasury, '1000000.0000000000', { roundToMicros: 1_000_000 })
  for (let round = 0; round < ROUNDS_BEFORE_MIGRATION; round += 1) {
    liveThrough(round)
    if (round === 2) showValues(1, false)
    if (round === 6) changeCoin(bob, 6)
  }
  const lastTimes = ledger.recordTimes.slice(-OVERLAPPING_UPDATES)
  ledger.migrate(lastTimes.filter((_, index) => index % 3 !== 1))
  for (let round = 0; round < ROUNDS_AFTER_MIGRATION; round += 1) {
    liveThrough(ROUNDS_BEFORE_MIGRATION + round)
    if (round === 3) showValues(4, true)
  }
  return ledger.lines
}
