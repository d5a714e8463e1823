import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { prepareLine } from '../src/history/encode.ts'
import { createCommand, exerciseCommand } from '../src/ledger/network.ts'
import { type Choice, type Template, templateEntry } from '../src/ledger/template.ts'
import { TEMPLATES } from '../src/ledger/templates.ts'
import { decimal } from '../src/values/decimal.ts'
import { openTestLedger, partyOf } from './support/embedded-ledger.ts'
import { forEachEngine } from './support/engines.ts'
import { newDirectory } from './support/node.ts'

const manual = readFileSync(new URL('../docs/ledger.md', import.meta.url), 'utf8')
const source = new URL('../src/', import.meta.url).href

type Example = {
  invoice: Template<unknown>
  receipt: Template<unknown>
  settleInvoice: Choice<unknown, unknown, unknown>
  invoiceChoices: Choice<unknown, unknown, unknown>[]
}

forEachEngine((engine) => {
  test(`the template of the manual works as it stands there, on ${engine.name}`, async (t) => {
    const code = /```ts\n([\s\S]*?)```/.exec(manual)?.[1]
    assert.ok(code)
    const file = join(newDirectory(t), 'invoice.ts')
    writeFileSync(
      file,
      code.replaceAll("'../", `'${source}`).replaceAll("'./", `'${source}ledger/`),
    )
    const example = (await import(pathToFileURL(file).href)) as Example
    const { invoice, receipt, settleInvoice, invoiceChoices } = example
    const templates = [
      ...TEMPLATES,
      templateEntry(invoice, invoiceChoices),
      templateEntry(receipt, []),
    ]
    const { ledger } = await openTestLedger(t, await engine.open(t, 'participant'), {
      ledger: { templates },
    })
    const [issuer, payer] = [partyOf('alice'), partyOf('bob')]
    const bill = { issuer, payer, amount: decimal('12.5'), subject: 'two chairs' }
    const issue = createCommand(ledger, invoice, bill)
    await assert.rejects(ledger.submit({ actAs: [payer], commands: [issue] }), {
      code: 'DAML_AUTHORIZATION_ERROR',
    })
    await ledger.submit({ actAs: [issuer], commands: [issue] })
    const [issued] = await ledger.contractsOf(invoice, payer)
    assert.ok(issued)
    const settle = (amount: string) =>
      ledger.submit({
        actAs: [payer],
        commands: [
          exerciseCommand(ledger, {
            template: invoice,
            contractId: issued.contractId,
            choice: settleInvoice,
            argument: { amount: decimal(amount) },
          }),
        ],
      })
    await assert.rejects(settle('12'), /settled in full/)
    prepareLine((await settle('12.5')).item)
    assert.equal((await ledger.contractsOf(receipt, issuer)).length, 1)
    assert.equal((await ledger.contractsOf(invoice, issuer)).length, 0)
  })
})
