import { coin, coinChoices } from './coin.ts'
import { lockedCoin, lockedCoinChoices } from './locked-coin.ts'
import { createPreapproval, preapproval, preapprovalChoices } from './preapproval.ts'
import { openRound, openRoundChoices } from './round.ts'
import { amuletRules, rulesChoices } from './rules.ts'
import { type TemplateEntry, templateEntry } from './template.ts'
import {
  externalRules,
  externalRulesChoices,
  transferInstruction,
  transferInstructionChoices,
} from './token-standard.ts'
import { topUpState, topUpStateChoices } from './top-up-state.ts'
import { buyTraffic, memberTraffic } from './traffic.ts'
import {
  acceptedOffer,
  acceptedOfferChoices,
  transferOffer,
  transferOfferChoices,
} from './transfer-offer.ts'
import { validatorLicence, validatorLicenceChoices } from './validator-licence.ts'
import {
  usedSecret,
  validatorOnboarding,
  validatorOnboardingChoices,
} from './validator-onboarding.ts'

/** Every template of the embedded ledger, with its choices. A new one is a line here. */
export const TEMPLATES: readonly TemplateEntry[] = [
  templateEntry(coin, coinChoices),
  templateEntry(lockedCoin, lockedCoinChoices),
  templateEntry(amuletRules, [...rulesChoices, createPreapproval, buyTraffic]),
  templateEntry(openRound, openRoundChoices),
  templateEntry(preapproval, preapprovalChoices),
  templateEntry(transferOffer, transferOfferChoices),
  templateEntry(acceptedOffer, acceptedOfferChoices),
  templateEntry(validatorLicence, validatorLicenceChoices),
  templateEntry(validatorOnboarding, validatorOnboardingChoices),
  templateEntry(usedSecret, []),
  templateEntry(memberTraffic, []),
  templateEntry(topUpState, topUpStateChoices),
  templateEntry(externalRules, externalRulesChoices),
  templateEntry(transferInstruction, transferInstructionChoices),
]
