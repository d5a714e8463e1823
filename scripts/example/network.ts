import { type Contract, type Ledger, openLedger, type Steps, type Template } from './ledger.ts'
import * as v from './values.ts'

// The coin network of the story: who is on it, which templates it runs, and the choices people make on it.

const START_MICROS = Date.UTC(2025, 5, 2, 8, 0, 0) * 1000
const COIN_PRICE = '0.0050000000'
const COIN_DECIMALS = 10
const ROUND_MICROS = 600_000_000

export type Network = ReturnType<typeof foundNetwork>

export function foundNetwork(seed: string) {
  const global = `global-domain::1220${openIds(seed)('synchronizer/global')}`
  const exchange = `harbor-exchange::1220${openIds(seed)('synchronizer/exchange')}`
  const ledger = openLedger({ seed, startMicros: START_MICROS, synchronizer: global })
  const templates = declareTemplates(ledger)
  const parties = {
    dso: ledger.party('DSO'),
    alice: ledger.party('alice'),
    bob: ledger.party('bob'),
    carol: ledger.party('carol'),
    treasury: ledger.party('treasury'),
    harbor: ledger.party('harbor-validator-1'),
    alpine: ledger.party('alpine-validator-1'),
  }
  const { dso } = parties

  function coinFields(owner: string, amount: string, round: number): v.Fields {
    return {
      dso: v.party(dso),
      owner: v.party(owner),
      amount: v.record({
        initialAmount: v.numeric(amount),
        createdAt: v.record({ number: v.int64(round) }),
        ratePerRound: v.record({ rate: v.numeric('0.0000190259') }),
      }),
    }
  }

  function createCoin(steps: Steps, owner: string, amount: string, round: number): Contract {
    return steps.create(templates.amulet, coinFields(owner, amount, round), {
      signatories: [dso, owner],
    })
  }

  function archive(steps: Steps, contract: Contract, actors: string[]): void {
    const argument = v.record({})
    steps.exercise(contract, { name: 'Archive', argument, actors, consuming: true }, () => v.unit)
  }

  function openRound(steps: Steps, number: number): Contract {
    return steps.create(
      templates.openMiningRound,
      {
        dso: v.party(dso),
        round: v.record({ number: v.int64(number) }),
        amuletPrice: v.numeric(COIN_PRICE),
        opensAt: v.timestamp(steps.nowMicros + ROUND_MICROS),
        targetClosesAt: v.timestamp(steps.nowMicros + 3 * ROUND_MICROS),
        tickDuration: v.record({ microseconds: v.int64(ROUND_MICROS) }),
      },
      { signatories: [dso] },
    )
  }

  return {
    ledger,
    templates,
    parties,
    global,
    exchange,
    coinFields,
    createCoin,
    archive,
    openRound,
  }
}

/** Amounts are added and split as whole numbers of the smallest unit, so that no coin appears or is lost. */
export function splitAmount(total: string, part: string): [kept: string, given: string] {
  const print = (amount: bigint) => {
    const digits = `${amount}`.padStart(COIN_DECIMALS + 1, '0')
    return `${digits.slice(0, -COIN_DECIMALS)}.${digits.slice(-COIN_DECIMALS)}`
  }
  return [print(units(total) - units(part)), print(units(part))]
}

export function covers(coin: Contract, part: string): boolean {
  return units(amountOf(coin)) > units(part)
}

export function amountOf(coin: Contract): string {
  const found = /"initialAmount","value":\{"numeric":"([^"]+)"/.exec(
    coin.fields.amount?.labelled ?? '',
  )
  return found?.[1] ?? '0.0000000000'
}

function units(amount: string): bigint {
  return BigInt(amount.replace('.', ''))
}

function openIds(seed: string): (name: string) => string {
  return openLedger({ seed, startMicros: 0, synchronizer: '' }).hash
}

function declareTemplates(ledger: Ledger) {
  const declare = (packageName: string, name: string): Template => ({
    id: `${ledger.hash(`package/${packageName}`)}:${name}`,
    packageName,
  })
  return {
    amulet: declare('splice-amulet', 'Splice.Amulet:Amulet'),
    appRewardCoupon: declare('splice-amulet', 'Splice.Amulet:AppRewardCoupon'),
    amuletRules: declare('splice-amulet', 'Splice.AmuletRules:AmuletRules'),
    transferPreapproval: declare('splice-amulet', 'Splice.AmuletRules:TransferPreapproval'),
    externalPartyRules: declare(
      'splice-amulet',
      'Splice.ExternalPartyAmuletRules:ExternalPartyAmuletRules',
    ),
    transferInstruction: declare(
      'splice-amulet',
      'Splice.AmuletTransferInstruction:AmuletTransferInstruction',
    ),
    openMiningRound: declare('splice-amulet', 'Splice.Round:OpenMiningRound'),
    issuingMiningRound: declare('splice-amulet', 'Splice.Round:IssuingMiningRound'),
    validatorLicense: declare('splice-amulet', 'Splice.ValidatorLicense:ValidatorLicense'),
    dsoRules: declare('splice-dso-governance', 'Splice.DsoRules:DsoRules'),
    voteRequest: declare('splice-dso-governance', 'Splice.DsoRules:VoteRequest'),
    transferOffer: declare('splice-wallet', 'Splice.Wallet.TransferOffer:TransferOffer'),
    acceptedTransferOffer: declare(
      'splice-wallet',
      'Splice.Wallet.TransferOffer:AcceptedTransferOffer',
    ),
    ansEntry: declare('splice-amulet-name-service', 'Splice.Ans:AnsEntry'),
    transferFactory: declare(
      'splice-api-token-transfer-instruction-v1',
      'Splice.Api.Token.TransferInstructionV1:TransferFactory',
    ),
    transferInstructionInterface: declare(
      'splice-api-token-transfer-instruction-v1',
      'Splice.Api.Token.TransferInstructionV1:TransferInstruction',
    ),
    showcase: declare('annals-showcase', 'Annals.Showcase:Showcase'),
  }
}
