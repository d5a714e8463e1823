import {
  contractId,
  list,
  numeric,
  optional,
  party,
  record,
  text,
  textMap,
  timestamp,
  unit,
  type ValueOf,
  variant,
} from '../values/value-type.ts'
import { lockedCoin, unlockCoin } from './locked-coin.ts'
import { amuletRules, paymentContext, transferCoins } from './rules.ts'
import {
  type Choice,
  defineChoice,
  defineTemplate,
  type Interface,
  implement,
  require,
  type Steps,
} from './template.ts'

/**
 * Transfers by the token standard: its choices are those of interfaces. The sender's coins are
 * locked for the receiver, who accepts or rejects.
 */

const PACKAGE = 'splice-api-token-transfer-instruction-v1'
const transferFactory: Interface = {
  packageName: PACKAGE,
  name: 'Splice.Api.Token.TransferInstructionV1:TransferFactory',
}
const instructionInterface: Interface = {
  packageName: PACKAGE,
  name: 'Splice.Api.Token.TransferInstructionV1:TransferInstruction',
}

const tokenTransfer = record({
  sender: party,
  receiver: party,
  amount: numeric,
  instrumentId: record({ admin: party, id: text }),
  requestedAt: timestamp,
  executeBefore: timestamp,
  inputHoldingCids: list(contractId),
  meta: record({ values: textMap(text) }),
})
const extraArgs = record({ context: paymentContext })
const holdingCids = record({ receiverHoldingCids: list(contractId) })
const output = variant({
  TransferInstructionResult_Pending: record({ transferInstructionCid: contractId }),
  TransferInstructionResult_Completed: holdingCids,
  TransferInstructionResult_Failed: unit,
})
const instructionResult = record({ output, senderChangeCids: list(contractId) })

const meta = record({ values: textMap(text) })
const factoryView = record({ admin: party, meta })
const instructionView = record({
  originalInstructionCid: optional(contractId),
  transfer: tokenTransfer,
  status: variant({ TransferPendingReceiverAcceptance: unit }),
  meta,
})

export const externalRules = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.ExternalPartyAmuletRules:ExternalPartyAmuletRules',
  payload: record({ dso: party }),
  signatories: ({ dso }) => [dso],
  observers: () => [],
  isPublic: true,
  interfaces: [
    implement(transferFactory, factoryView, ({ dso }: { dso: string }) => ({
      admin: dso,
      meta: { values: {} },
    })),
  ],
})

const instructionPayload = record({ transfer: tokenTransfer, lockedAmulet: contractId })

export const transferInstruction = defineTemplate({
  packageName: 'splice-amulet',
  name: 'Splice.AmuletTransferInstruction:AmuletTransferInstruction',
  payload: instructionPayload,
  signatories: ({ transfer }) => [transfer.instrumentId.admin, transfer.sender],
  observers: ({ transfer }) => [transfer.receiver],
  interfaces: [
    implement(
      instructionInterface,
      instructionView,
      ({ transfer }: ValueOf<typeof instructionPayload>) => ({
        originalInstructionCid: null,
        transfer,
        status: { tag: 'TransferPendingReceiverAcceptance' as const, value: {} },
        meta: { values: {} },
      }),
    ),
  ],
})

export type TransferInstructionPayload = ValueOf<(typeof transferInstruction)['payload']>

export const factoryTransfer = defineChoice(externalRules, {
  name: 'TransferFactory_Transfer',
  interface: transferFactory,
  consuming: false,
  argument: record({ expectedAdmin: party, transfer: tokenTransfer, extraArgs }),
  result: instructionResult,
  controllers: (_payload, { transfer }) => [transfer.sender],
  async run(steps: Steps, { payload }, { expectedAdmin, transfer, extraArgs: { context } }) {
    const { dso } = payload
    const { sender, amount } = transfer
    require(expectedAdmin === dso, 'The expected admin is not the one of this factory.')
    require(transfer.instrumentId.admin === dso, 'The instrument is not of this network.')
    require(steps.nowMicros < transfer.executeBefore, 'The transfer has expired.')
    const lock = {
      holders: [dso],
      expiresAt: transfer.executeBefore,
      optContext: `transfer to '${transfer.receiver}'`,
    }
    const moved = await steps.exercise({
      template: amuletRules,
      contractId: context.amuletRules,
      choice: transferCoins,
      argument: {
        transfer: {
          sender,
          provider: sender,
          inputs: transfer.inputHoldingCids.map((value) => ({
            tag: 'InputAmulet' as const,
            value,
          })),
          outputs: [{ receiver: sender, amount, lock }],
        },
        openMiningRound: context.openMiningRound,
      },
    })
    const lockedAmulet = moved.createdAmulets[0]?.value as string
    const transferInstructionCid = await steps.create(transferInstruction, {
      transfer,
      lockedAmulet,
    })
    return {
      output: {
        tag: 'TransferInstructionResult_Pending' as const,
        value: { transferInstructionCid },
      },
      senderChangeCids: moved.senderChangeAmulet === null ? [] : [moved.senderChangeAmulet],
    }
  },
})

export const acceptInstruction = defineChoice(transferInstruction, {
  name: 'TransferInstruction_Accept',
  interface: instructionInterface,
  consuming: true,
  argument: record({ extraArgs }),
  result: instructionResult,
  controllers: ({ transfer }) => [transfer.receiver],
  async run(steps: Steps, { payload }, { extraArgs: { context } }) {
    const { transfer } = payload
    require(steps.nowMicros < transfer.executeBefore, 'The transfer has expired.')
    const amuletCid = await unlock(steps, payload)
    const moved = await steps.exercise({
      template: amuletRules,
      contractId: context.amuletRules,
      choice: transferCoins,
      argument: {
        transfer: {
          sender: transfer.sender,
          provider: transfer.sender,
          inputs: [{ tag: 'InputAmulet', value: amuletCid }],
          outputs: [{ receiver: transfer.receiver, amount: transfer.amount, lock: null }],
        },
        openMiningRound: context.openMiningRound,
      },
    })
    const receiverHoldingCids = moved.createdAmulets.map(({ value }) => value)
    return {
      output: {
        tag: 'TransferInstructionResult_Completed' as const,
        value: { receiverHoldingCids },
      },
      senderChangeCids: [],
    }
  },
})

/** Ends an instruction without a transfer: the coins go back to the sender. */
function giveBack(name: string, by: 'sender' | 'receiver') {
  return defineChoice(transferInstruction, {
    name,
    interface: instructionInterface,
    consuming: true,
    argument: record({ extraArgs: optional(extraArgs) }),
    result: instructionResult,
    controllers: ({ transfer }) => [transfer[by]],
    async run(steps: Steps, { payload }) {
      return {
        output: { tag: 'TransferInstructionResult_Failed' as const, value: {} },
        senderChangeCids: [await unlock(steps, payload)],
      }
    },
  })
}

export const externalRulesChoices: Choice<{ dso: string }, unknown, unknown>[] = [factoryTransfer]

export const transferInstructionChoices: Choice<TransferInstructionPayload, unknown, unknown>[] = [
  acceptInstruction,
  giveBack('TransferInstruction_Reject', 'receiver'),
  giveBack('TransferInstruction_Withdraw', 'sender'),
]

async function unlock(steps: Steps, payload: TransferInstructionPayload): Promise<string> {
  const { amuletCid } = await steps.exercise({
    template: lockedCoin,
    contractId: payload.lockedAmulet,
    choice: unlockCoin,
    argument: {},
  })
  return amuletCid
}
