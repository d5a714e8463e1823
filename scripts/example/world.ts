import assert from 'node:assert/strict'
import type { Contract, Steps, Submission } from './ledger.ts'
import { amountOf, covers, foundNetwork, splitAmount } from './network.ts'
import * as v from './values.ts'

// The network as the story goes on: its rules, its rounds, its validators, and what is in everyone's purse.

const OPEN_ROUNDS = 3

export type World = ReturnType<typeof foundWorld>

export function foundWorld(seed: string) {
  const network = foundNetwork(seed)
  const { ledger, templates, parties, createCoin, archive } = network
  const { dso, alice, bob, carol, harbor, alpine } = parties
  const people = [alice, bob, carol]
  const purses = new Map<string, Contract[]>()
  const licenses = new Map<string, Contract>()
  const rounds: Contract[] = []
  let founded: { amulet: Contract; dso: Contract; external: Contract } | undefined
  let roundNumber = 0

  function rules() {
    assert(founded !== undefined, 'the network is founded first')
    return founded
  }

  const purse = (owner: string) => purses.get(owner) ?? []
  const keep = (owner: string, coin: Contract) => purses.set(owner, [...purse(owner), coin])
  const coinFor = (owner: string, part: string) => {
    const coin = purse(owner).find((held) => covers(held, part))
    assert(coin !== undefined, `${owner} has no coin of ${part}`)
    return coin
  }
  const spend = (owner: string, part: string) => {
    const coin = coinFor(owner, part)
    const kept = purse(owner).filter((held) => held !== coin)
    purses.set(owner, kept)
    return coin
  }
  const currentRound = () => {
    const round = rounds.at(-2)
    assert(round !== undefined, 'a round is open')
    return round
  }
  const person = (turn: number) => people[turn % people.length] as string

  function found(): void {
    ledger.submit({ workflow: 'found-dso', roundToMicros: 1_000_000 }, (steps) => {
      const name = v.text('Coin')
      const amulet = steps.create(
        templates.amuletRules,
        { dso: v.party(dso), isDevNet: v.bool(true), tokenName: name, featuredApps: v.genMap([]) },
        { signatories: [dso] },
      )
      const governance = steps.create(
        templates.dsoRules,
        {
          dso: v.party(dso),
          epoch: v.int64(0),
          svs: v.genMap([
            [
              v.party(harbor),
              v.record({
                name: v.text('Harbor'),
                joinedAsOfRound: v.int64(0),
                weight: v.int64(10_000),
              }),
            ],
            [
              v.party(alpine),
              v.record({
                name: v.text('Alpine'),
                joinedAsOfRound: v.int64(0),
                weight: v.int64(2_500),
              }),
            ],
          ]),
          initialTrafficState: v.textMap([]),
        },
        { signatories: [dso], observers: [harbor, alpine] },
      )
      const external = steps.create(
        templates.externalPartyRules,
        { dso: v.party(dso) },
        { signatories: [dso] },
      )
      for (; roundNumber < OPEN_ROUNDS; roundNumber += 1)
        rounds.push(network.openRound(steps, roundNumber))
      founded = { amulet, dso: governance, external }
    })
    for (const validator of [harbor, alpine]) {
      ledger.submit({ workflow: 'onboard-validator', roundToMicros: 1000 }, (steps) => {
        licenses.set(validator, createLicense(steps, validator, v.none))
      })
    }
  }

  function createLicense(steps: Steps, validator: string, lastActive: v.Value): Contract {
    return steps.create(
      templates.validatorLicense,
      {
        validator: v.party(validator),
        sponsor: v.party(harbor),
        dso: v.party(dso),
        faucetState: v.some(v.record({ numCouponsMissed: v.int64(0) })),
        metadata: v.some(
          v.record({
            version: v.text('0.6.2'),
            contactPoint: v.text(`ops@${validator.split('-')[0]}.example`),
          }),
        ),
        lastActiveAt: lastActive,
      },
      { signatories: [dso], observers: [validator] },
    )
  }

  /** Nested three deep: governance tells the coin rules, which archive the oldest round and open the next. */
  function advanceRounds(bare: boolean): void {
    const oldest = rounds.shift() as Contract
    ledger.submit({ workflow: 'advance-rounds', bare }, (steps) => {
      const argument = v.record({
        amuletRulesCid: v.contractId(rules().amulet.id),
        sv: v.some(v.party(harbor)),
      })
      steps.exercise(
        rules().dso,
        { name: 'DsoRules_AdvanceOpenMiningRounds', argument, actors: [harbor] },
        () => {
          const price = v.record({
            amuletPrice: v.numeric('0.0050000000'),
            oldest: v.contractId(oldest.id),
          })
          steps.exercise(
            rules().amulet,
            { name: 'AmuletRules_AdvanceOpenMiningRounds', argument: price, actors: [dso] },
            () => {
              archive(steps, oldest, [dso])
              const opened = network.openRound(steps, roundNumber)
              rounds.push(opened)
              roundNumber += 1
              return v.record({ openRoundCid: v.contractId(opened.id) })
            },
          )
          return v.unit
        },
      )
    })
  }

  function reportActivity(validator: string): void {
    const license = licenses.get(validator) as Contract
    ledger.submit({}, (steps) => {
      const argument = v.record({ openRoundCid: v.contractId(currentRound().id) })
      steps.exercise(
        license,
        {
          name: 'ValidatorLicense_RecordValidatorLivenessActivity',
          argument,
          actors: [validator],
          consuming: true,
        },
        () => {
          const renewed = createLicense(steps, validator, v.some(v.timestamp(steps.nowMicros)))
          licenses.set(validator, renewed)
          return v.record({ licenseCid: v.contractId(renewed.id) })
        },
      )
    })
  }

  function tap(owner: string, amount: string, submission: Submission = {}): void {
    ledger.submit({ workflow: 'tap', ...submission }, (steps) => {
      const argument = v.record({
        receiver: v.party(owner),
        amount: v.numeric(amount),
        openRound: v.contractId(currentRound().id),
      })
      steps.exercise(
        rules().amulet,
        { name: 'AmuletRules_DevNet_Tap', argument, actors: [owner] },
        () => {
          const coin = createCoin(steps, owner, amount, roundNumber)
          keep(owner, coin)
          return v.record({
            amuletSum: v.record({
              amulet: v.contractId(coin.id),
              amuletPrice: v.numeric('0.0050000000'),
              round: v.record({ number: v.int64(roundNumber) }),
            }),
            meta: v.none,
          })
        },
      )
    })
  }

  /** Archives one coin of the sender, creates the receiver's and the change. Returns the receiver's. */
  function moveCoin(steps: Steps, sender: string, receiver: string, part: string): Contract {
    const input = spend(sender, part)
    const [change, given] = splitAmount(amountOf(input), part)
    archive(steps, input, [dso, sender])
    const received = createCoin(steps, receiver, given, roundNumber)
    keep(receiver, received)
    keep(sender, createCoin(steps, sender, change, roundNumber))
    return received
  }

  found()
  return {
    ...network,
    rules,
    purse,
    coinFor,
    keep,
    spend,
    person,
    people,
    currentRound,
    roundNumber: () => roundNumber,
    advanceRounds,
    reportActivity,
    tap,
    moveCoin,
  }
}
