import type { Contract, Submission } from './ledger.ts'
import { amountOf, splitAmount } from './network.ts'
import * as v from './values.ts'
import type { World } from './world.ts'

// The ways in which coins change hands: offers, the token standard, preapproved transfers, and changing one's own.

const SMALL_COIN = '0.0000000001'

export function arrangePayments(world: World) {
  const { ledger, templates, parties, rules, archive, createCoin, moveCoin, keep, spend } = world
  const { coinFor, person, currentRound, roundNumber } = world
  const { dso, carol, treasury, harbor, alpine } = parties
  const host = (owner: string) => (owner === carol ? alpine : harbor)

  function offer(sender: string, receiver: string, amount: string, note: string): Contract {
    return ledger.submit({ workflow: 'offer' }, (steps) => {
      return steps.create(
        templates.transferOffer,
        {
          sender: v.party(sender),
          receiver: v.party(receiver),
          dso: v.party(dso),
          amount: v.record({ amount: v.numeric(amount), unit: v.enumeration('AmuletUnit') }),
          description: v.text(note),
          expiresAt: v.timestamp(steps.nowMicros + 86_400_000_000),
          trackingId: v.text(`offer-${ledger.hash(note).slice(0, 8)}`),
        },
        { signatories: [sender], observers: [receiver] },
      )
    })
  }

  function accept(offered: Contract, sender: string, receiver: string, amount: string): void {
    let accepted: Contract | undefined
    ledger.submit({ workflow: 'offer' }, (steps) => {
      const choice = {
        name: 'TransferOffer_Accept',
        argument: v.record({}),
        actors: [receiver],
        consuming: true,
      }
      steps.exercise(offered, choice, () => {
        accepted = steps.create(
          templates.acceptedTransferOffer,
          {
            sender: v.party(sender),
            receiver: v.party(receiver),
            amount: v.numeric(amount),
            offer: v.contractId(offered.id),
          },
          { signatories: [sender, receiver] },
        )
        return v.record({ acceptedTransferOffer: v.contractId(accepted.id) })
      })
    })
    ledger.submit({ workflow: 'offer' }, (steps) => {
      const argument = v.record({
        inputs: v.list(v.contractId(coinFor(sender, amount).id)),
        round: v.contractId(currentRound().id),
      })
      const choice = {
        name: 'AcceptedTransferOffer_Complete',
        argument,
        actors: [sender],
        consuming: true,
      }
      steps.exercise(accepted as Contract, choice, () => {
        const received = moveCoin(steps, sender, receiver, amount)
        return v.record({ transferResult: v.contractId(received.id), trackingInfo: v.none })
      })
    })
  }

  function turnDown(
    offered: Contract,
    name: string,
    actor: string,
    submission: Submission = {},
  ): void {
    ledger.submit(submission, (steps) => {
      const argument =
        name === 'TransferOffer_Expire' ? v.record({ actor: v.party(actor) }) : v.record({})
      steps.exercise(offered, { name, argument, actors: [actor], consuming: true }, () =>
        v.record({ trackingInfo: v.none }),
      )
    })
  }

  function offerAnd(what: 'accept' | 'reject' | 'withdraw' | 'expire', turn: number): void {
    const sender = person(turn)
    const receiver = person(turn + 1)
    const amount = `${1 + (turn % 5)}.${`${turn * 7919}`.padStart(10, '0')}`
    const offered = offer(sender, receiver, amount, NOTES[turn % NOTES.length] as string)
    if (what === 'accept') accept(offered, sender, receiver, amount)
    if (what === 'reject') turnDown(offered, 'TransferOffer_Reject', receiver)
    if (what === 'withdraw')
      turnDown(offered, 'TransferOffer_Withdraw', sender, { workflow: 'offer' })
    if (what === 'expire')
      turnDown(offered, 'TransferOffer_Expire', sender, { bare: turn % 2 === 1 })
  }

  /** The token standard: choices of an interface, signed by an external party, then accepted by the receiver. */
  function sendByTokenStandard(receiver: string, amount: string): void {
    let instruction: Contract | undefined
    const context = v.record({
      values: v.textMap([
        ['amulet-rules', v.variant('AV_ContractId', v.contractId(rules().amulet.id))],
      ]),
    })
    ledger.submit({ external: true }, (steps) => {
      const argument = v.record({
        expectedAdmin: v.party(dso),
        transfer: v.record({
          sender: v.party(treasury),
          receiver: v.party(receiver),
          amount: v.numeric(amount),
          instrumentId: v.record({ admin: v.party(dso), id: v.text('Amulet') }),
          executeBefore: v.timestamp(steps.nowMicros + 3_600_000_000),
          meta: v.record({
            values: v.textMap([
              ['splice.lfdecentralizedtrust.org/reason', v.text('invoice №17 — “paid”')],
            ]),
          }),
        }),
        extraArgs: v.record({ context }),
      })
      const choice = {
        name: 'TransferFactory_Transfer',
        argument,
        actors: [treasury],
        interface: templates.transferFactory,
      }
      steps.exercise(rules().external, choice, () => {
        instruction = steps.create(
          templates.transferInstruction,
          {
            sender: v.party(treasury),
            receiver: v.party(receiver),
            amount: v.numeric(amount),
            lock: v.none,
          },
          { signatories: [dso, treasury], observers: [receiver] },
        )
        return v.record({
          output: v.variant('TransferInstructionResult_Pending', v.contractId(instruction.id)),
          senderChangeCids: v.list(),
          meta: v.none,
        })
      })
    })
    ledger.submit({}, (steps) => {
      const argument = v.record({ extraArgs: v.record({ context }) })
      const choice = {
        name: 'TransferInstruction_Accept',
        argument,
        actors: [receiver],
        consuming: true,
        interface: templates.transferInstructionInterface,
      }
      steps.exercise(instruction as Contract, choice, () => {
        const received = moveCoin(steps, treasury, receiver, amount)
        return v.record({
          output: v.variant(
            'TransferInstructionResult_Completed',
            v.list(v.contractId(received.id)),
          ),
        })
      })
    })
  }

  function preapprove(receiver: string): void {
    const provider = host(receiver)
    const preapproval = ledger.submit({ workflow: 'preapprove' }, (steps) => {
      return steps.create(
        templates.transferPreapproval,
        {
          dso: v.party(dso),
          receiver: v.party(receiver),
          provider: v.party(provider),
          validFrom: v.timestamp(steps.nowMicros),
          expiresAt: v.timestamp(steps.nowMicros + 90 * 86_400_000_000),
        },
        { signatories: [receiver, provider, dso] },
      )
    })
    const argument = v.record({
      sender: v.party(treasury),
      amount: v.numeric('0.2500000000'),
      description: v.some(v.text('salary 💶')),
    })
    ledger.submit({ external: true, workflow: 'preapprove' }, (steps) => {
      steps.exercise(
        preapproval,
        { name: 'TransferPreapproval_Send', argument, actors: [treasury] },
        () => {
          const received = moveCoin(steps, treasury, receiver, '0.2500000000')
          return v.record({ result: v.contractId(received.id), meta: v.none })
        },
      )
    })
    ledger.submit({}, (steps) => {
      const choice = {
        name: 'TransferPreapproval_Cancel',
        argument: v.record({ p: v.party(receiver) }),
        actors: [receiver],
        consuming: true,
      }
      steps.exercise(preapproval, choice, () => v.unit)
    })
  }

  /** A coin is changed into small ones and back: more than eleven events, so that ":10" and ":2" sort apart. */
  function changeCoin(owner: string, parts: number): void {
    ledger.submit({ workflow: 'change-coin' }, (steps) => {
      const coin = spend(owner, SMALL_COIN)
      archive(steps, coin, [dso, owner])
      const small: Contract[] = []
      let rest = amountOf(coin)
      for (let part = 1; part < parts; part += 1) {
        ;[rest] = splitAmount(rest, SMALL_COIN)
        small.push(createCoin(steps, owner, SMALL_COIN, roundNumber()))
      }
      small.push(createCoin(steps, owner, rest, roundNumber()))
      for (const part of small) archive(steps, part, [dso, owner])
      keep(owner, createCoin(steps, owner, amountOf(coin), roundNumber()))
    })
  }

  return { offerAnd, sendByTokenStandard, preapprove, changeCoin }
}

const NOTES = [
  'Lunch',
  'Rent for June',
  'Grazie! 🍕',
  'Konzertkarten – zwei Stück',
  '"just because"',
  'お茶',
  'Split of the taxi\n(line two)',
  '',
]
