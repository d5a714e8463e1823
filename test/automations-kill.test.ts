import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { coin } from '../src/ledger/coin.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { lockedCoin } from '../src/ledger/locked-coin.ts'
import { decimal } from '../src/values/decimal.ts'
import { AUTOMATIONS } from '../src/wallet/automation.ts'
import { forEachEngine } from './support/engines.ts'
import { workUntilKilled } from './support/killed-child.ts'
import { newDirectory } from './support/node.ts'
import { checkLog, startWalletNode, until, type WalletNode } from './support/wallet.ts'

const KILLS = 4
/** Long enough for many acts, so that the kill falls anywhere in one. */
const KILL_DELAY_MS_MAX = 1000
/** Commands of automations, and of nobody else. */
const ACT = new RegExp(`^annals-(${AUTOMATIONS.join('|')})-`)

async function supplyOf(ledger: Ledger, parties: readonly string[]): Promise<bigint> {
  let supply = 0n
  for (const party of parties) {
    for (const { payload } of await ledger.contractsOf(coin, party)) {
      if (payload.owner === party) supply += payload.amount.initialAmount
    }
    for (const { payload } of await ledger.contractsOf(lockedCoin, party)) {
      if (payload.amulet.owner === party) supply += payload.amulet.amount.initialAmount
    }
  }
  return supply
}

/** The updates of all acts on record. */
async function readRecord(node: WalletNode, parties: readonly string[]): Promise<string[]> {
  type Audit = { entries: { action: string; after: { updateId: string } }[]; nextPageToken: string }
  const recorded: string[] = []
  for (const party of parties) {
    let pageToken = ''
    do {
      const query = new URLSearchParams({ party, pageSize: '1000', pageToken })
      const page = await node.ledger<Audit>('GET', `/v2/audit?${query}`)
      for (const { action, after } of page.entries) {
        if (action === 'automation.act') recorded.push(after.updateId)
      }
      pageToken = page.nextPageToken
    } while (pageToken !== '')
  }
  return recorded.toSorted()
}

forEachEngine((engine) => {
  test(`${engine.name}: however often a node is killed, its automations lose no coin, make none, and do nothing twice`, async (t) => {
    const dataDirectory = newDirectory(t)
    const target = await engine.newTarget(t)
    const first = await startWalletNode(t, { dataDirectory, target, simTime: false })
    const alice = await first.register('alice')
    const bob = await first.register('bob')
    await first.post('alice', '/v0/wallet/transfer-preapproval')
    const operator = (await first.get<{ party_id: string }>('', '/v0/validator-user')).party_id
    const fingerprint = alice.slice(alice.indexOf('::'))
    const parties = [alice, bob, operator, `carol${fingerprint}`]
    assert.ok(first.node.ledger !== undefined)
    const before = await supplyOf(first.node.ledger, parties)
    await first.node.close()

    // Coins go in a circle: by offer to bob, and by preapproval back to alice.
    const rule = { maxBalanceUsd: '30', minBalanceUsd: '1' }
    const wallet = {
      sweeps: [
        { sender: alice, receiver: bob, useTransferPreapproval: false, ...rule },
        { sender: bob, receiver: alice, useTransferPreapproval: true, ...rule },
      ],
      autoAccept: [{ receiver: bob, fromParties: [alice] }],
      topUp: {
        targetThroughput: 200_000_000,
        minTopupIntervalMs: 10,
        reservedTraffic: 0,
        pollingIntervalMs: 10,
      },
      pollingIntervalMs: 10,
    }
    let payments = 0
    for (let round = 0; round < KILLS; round += 1) {
      const settings = [JSON.stringify(target), JSON.stringify(wallet)]
      const people = [`DSO${fingerprint}`, alice]
      // Goes back a little, so that payments which were made are tried again.
      const from = String(Math.max(0, payments - 2))
      const args = [dataDirectory, ...settings, ...people, from]
      const told = await workUntilKilled(t, './automations-child.ts', args, KILL_DELAY_MS_MAX)
      payments = Number(from) + told.length
    }

    const last = await startWalletNode(t, { dataDirectory, target, simTime: false })
    const { ledger } = last.node
    assert.ok(ledger !== undefined)
    await until(async () => {
      type Offers = { accepted_offers: [] }
      const path = '/v0/wallet/accepted-transfer-offers'
      return (await last.get<Offers>('alice', path)).accepted_offers.length === 0
    }, 'accepted offers are paid')
    // What was left open is looked up at the start; what never reached the ledger stays undone.
    let updates = await ledger.updatesAfter(0n, 1_000_000)
    const actsOf = () =>
      updates
        .filter(({ command }) => ACT.test(command.commandId))
        .map(({ updateId }) => updateId)
        .toSorted()
    await until(async () => {
      updates = await ledger.updatesAfter(0n, 1_000_000)
      return isDeepStrictEqual(await readRecord(last, parties), actsOf())
    }, 'every act is on record, once')
    assert.ok(actsOf().length > 2 * KILLS)
    const commands = updates.map(({ command }) => command.commandId).filter((id) => id !== '')
    assert.equal(new Set(commands).size, commands.length, 'no command was done twice')
    const received = commands
      .filter((id) => id.startsWith('in-'))
      .reduce((sum, id) => sum + decimal('500') + BigInt(id.slice('in-'.length)), 0n)
    assert.equal(await supplyOf(ledger, parties), before + received)
    await checkLog(last, 'alice')
    await checkLog(last, 'bob')
  })
})
