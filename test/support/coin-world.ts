import assert from 'node:assert/strict'
import { DEV_AUDIENCE, mintDevToken, readDevKey } from '../../src/users/dev-key.ts'
import type { Cleanup } from './engines.ts'
import { newDirectory, startTestNode, type TestNodeOptions } from './node.ts'

export const COIN = '#splice-amulet:Splice.Amulet:Amulet'
export const RULES = '#splice-amulet:Splice.AmuletRules:AmuletRules'
export const ROUND = '#splice-amulet:Splice.Round:OpenMiningRound'
export const OFFER = '#splice-wallet:Splice.Wallet.TransferOffer:TransferOffer'

export type Json = Record<string, unknown>

/** A node with the seeded network, and its ledger API as a user of it. */
export async function openWorld(t: Cleanup, options: TestNodeOptions = {}) {
  const dataDirectory = options.dataDirectory ?? newDirectory(t)
  const node = await startTestNode(t, { empty: false, ...options, dataDirectory })
  const key = await readDevKey(dataDirectory)
  assert.ok(key && node.ledger)
  const tokens = new Map<string, string>()
  const tokenOf = async (userId: string) => {
    const token =
      tokens.get(userId) ??
      (await mintDevToken(key, { userId, ttlSeconds: 600, audience: DEV_AUDIENCE }))
    tokens.set(userId, token)
    return token
  }
  const ask = async (userId: string, path: string, body?: unknown) => {
    const response = await fetch(`${node.urls.ledger}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${await tokenOf(userId)}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: JSON.parse(text) as Json }
  }
  const [first] = await node.ledger.updatesAfter(0n, 1)
  const dso = first?.witnesses.parties[0] as string
  const party = (hint: string) => dso.replace('DSO::', `${hint}::`)
  const active = async (userId: string, of: string, templateId: string) => {
    const { status, body } = await ask(userId, '/v2/state/active-contracts', {
      eventFormat: formatOf(of, templateId),
    })
    assert.equal(status, 200, JSON.stringify(body))
    return (
      body as unknown as { contractEntry: { JsActiveContract: { createdEvent: Json } } }[]
    ).map(({ contractEntry }) => contractEntry.JsActiveContract.createdEvent as unknown as Created)
  }
  const [rules] = await active('participant_admin', dso, RULES)
  const [round] = await active('participant_admin', dso, ROUND)
  assert.ok(rules && round)
  let commands = 0
  const tap = (receiver: string, amount: string) => ({
    ExerciseCommand: {
      templateId: RULES,
      contractId: rules.contractId,
      choice: 'AmuletRules_DevNet_Tap',
      choiceArgument: { receiver, amount, openRound: round.contractId },
    },
  })
  const submit = (userId: string, actAs: string[], list: unknown[], more: object = {}) => {
    commands += 1
    const body = { commands: list, actAs, commandId: `c${commands}`, ...more }
    return ask(userId, '/v2/commands/submit-and-wait', body)
  }
  return { node, ledger: node.ledger, ask, active, party, dso, rules, round, tap, submit, tokenOf }
}

export type Created = { contractId: string; createArgument: Json; signatories: string[] }

/** What a party sees: everything, or one template. */
export function formatOf(party: string, templateId?: string) {
  const cumulative =
    templateId === undefined
      ? []
      : [{ identifierFilter: { TemplateFilter: { value: { templateId } } } }]
  return { filtersByParty: { [party]: { cumulative } }, verbose: true }
}
