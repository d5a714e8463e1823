import { AUTOMATIONS } from './automation.ts'

/** JSON Schemas of what the validator API takes and gives. Answers are closed, requests stay open. */
export type Schema = Record<string, unknown>

export const text: Schema = { type: 'string' }
export const flag: Schema = { type: 'boolean' }
export const whole: Schema = { type: 'integer' }
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
export const listOf = (items: Schema): Schema => ({ type: 'array', items })
export const amount: Schema = {
  type: 'string',
  pattern: '^-?\\d{1,28}\\.\\d{10}$',
  description: 'A decimal number, always with ten places.',
}
const amountWish: Schema = {
  type: 'string',
  description: 'A decimal number above zero with at most ten places, such as "12.5".',
}
const microseconds: Schema = {
  type: 'integer',
  format: 'int64',
  description: 'Microseconds since 1970.',
}

/** An answer: every field is always there, but for those that are said to be optional. */
export const closed = (
  properties: Record<string, Schema>,
  optional: Record<string, Schema> = {},
): Schema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
  additionalProperties: false,
})

const nullable = (schema: Schema): Schema => ({ oneOf: [{ type: 'null' }, schema] })

const request = (properties: Record<string, Schema>, optional: Record<string, Schema> = {}) => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
})

const trackingId: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  description:
    'Repeated with the same content, the request is answered again and not carried out again; with another content it is refused with 409.',
}
const party: Schema = { type: 'string', description: 'A party id: name::fingerprint.' }
const partyAmount = closed({ party: text, amount })

export const schemas: Record<string, Schema> = {
  Error: closed({ error: text }),
  Party: closed({ party_id: party }),
  Nothing: closed({}),
  UserStatus: closed({
    party_id: text,
    user_onboarded: flag,
    user_wallet_installed: flag,
    has_featured_app_right: flag,
  }),
  Balance: closed({
    round: whole,
    effective_unlocked_qty: amount,
    effective_locked_qty: amount,
    total_holding_fees: amount,
    amulet_price: amount,
    unlocked_usd: amount,
    locked_usd: amount,
  }),
  Contract: closed({
    template_id: text,
    contract_id: text,
    payload: { type: 'object' },
    created_event_blob: text,
    created_at: { type: 'string', format: 'date-time' },
  }),
  ContractWithState: closed({ contract: ref('Contract') }, { domain_id: text }),
  Position: closed({
    contract: ref('ContractWithState'),
    round: whole,
    accrued_holding_fee: amount,
    effective_amount: amount,
  }),
  Positions: closed({
    amulets: listOf(ref('Position')),
    locked_amulets: listOf(ref('Position')),
  }),
  TransactionsRequest: request(
    { page_size: { type: 'integer', format: 'int64', minimum: 1 } },
    { begin_after_id: { ...text, description: 'The event_id of the last entry seen.' } },
  ),
  Transactions: closed({ items: listOf(ref('Transaction')) }),
  Transaction: closed(
    {
      transaction_type: { enum: ['transfer', 'balance_change', 'unknown'] },
      transaction_subtype: closed({ template_id: text, choice: text, amulet_operation: text }),
      event_id: text,
      transaction_id: text,
      date: { type: 'string', format: 'date-time' },
      amount: { ...amount, description: 'What the wallet has gained or, below zero, lost.' },
    },
    {
      sender: partyAmount,
      receivers: listOf(partyAmount),
      description: text,
      tracking_id: text,
      traffic_purchased: text,
      holding_fees: amount,
      app_rewards_used: amount,
      validator_rewards_used: amount,
      sv_rewards_used: amount,
      development_fund_coupons_used: amount,
    },
  ),
  OfferRequest: request({
    receiver_party_id: party,
    amount: amountWish,
    description: { type: 'string', maxLength: 1000 },
    expires_at: microseconds,
    tracking_id: trackingId,
  }),
  OfferCreated: closed({ offer_contract_id: text }),
  Offers: closed({ offers: listOf(ref('Contract')) }),
  AcceptedOffers: closed({ accepted_offers: listOf(ref('Contract')) }),
  OfferAccepted: closed({ accepted_offer_contract_id: text }),
  OfferStatus: {
    oneOf: [
      closed({
        status: { enum: ['created', 'accepted', 'completed'] },
        transaction_id: text,
        contract_id: text,
      }),
      closed(
        {
          status: { const: 'failed' },
          failure_kind: { enum: ['expired', 'rejected', 'withdrawn'] },
        },
        { withdrawn_reason: text },
      ),
    ],
  },
  PreapprovalCreated: closed({ transfer_preapproval_contract_id: text }),
  PreapprovalExists: closed({ error: text, transfer_preapproval_contract_id: text }),
  Preapproval: closed({ transfer_preapproval: ref('ContractWithState') }),
  Preapprovals: closed({ contracts: listOf(ref('Contract')) }),
  SendRequest: request(
    { receiver_party_id: party, amount: amountWish, deduplication_id: trackingId },
    { description: { type: 'string', maxLength: 1000 } },
  ),
  Sent: closed({ transaction_id: text }),
  TapRequest: request(
    { amount: { ...amountWish, description: 'USD, at the price of the open round.' } },
    { command_id: trackingId },
  ),
  Tapped: closed({ contract_id: text }),
  TrafficRequest: request({
    receiving_validator_party_id: party,
    domain_id: text,
    traffic_amount: { type: 'integer', format: 'int64', minimum: 1 },
    expires_at: microseconds,
    tracking_id: trackingId,
  }),
  TrafficRequested: closed({ request_contract_id: text }),
  TrafficRequestStatus: {
    oneOf: [
      closed({ status: { const: 'created' } }),
      closed({ status: { const: 'completed' }, transaction_id: text }),
    ],
  },
  TrafficStatus: closed({
    member_id: text,
    domain_id: text,
    traffic_status: closed({
      actual: closed({ total_consumed: whole, total_limit: whole }),
      target: closed({ total_purchased: whole }),
    }),
    extra_traffic_remainder: whole,
  }),
  Features: closed({ token_standard: flag, transfer_preapproval_description: flag }),
  ValidatorUser: closed({ party_id: party, user_name: text, featured: flag }),
  OnboardRequest: request({ name: text }),
  Users: closed({ usernames: listOf(text) }),
  Automations: closed({ automations: listOf(ref('Automation')), warnings: listOf(text) }),
  Automation: closed(
    {
      name: { enum: [...AUTOMATIONS, 'pruning'] },
      party: { ...party, description: 'Whose wallet it works for; of pruning, the participant.' },
      state: { enum: ['on', 'off', 'paused'] },
      why: text,
      last_run: nullable(text),
      next_run: nullable(text),
      last_outcome: nullable(closed({ kind: text, at: text, sentence: text })),
      last_act: nullable(closed({ at: text, what: text, update_id: text })),
      failures_in_a_row: whole,
    },
    { dry_run: text },
  ),
}
