import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
/** They reach the client as NA. */
const REDACTED = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'LEDGER_API_INTERNAL_ERROR'])

test('the manual lists every error code of the ledger API and no other', () => {
  const sources = ['errors.ts', 'ready-routes.ts'].map((file) => read(`../src/users/${file}`))
  const code = [
    ...sources,
    read('../src/ledger/errors.ts'),
    read('../src/http/ledger-error.ts'),
  ].join('\n')
  const inCode = new Set([...code.matchAll(/\bcode: '([A-Z_]+)'/g)].map(([, name]) => name))
  const errors = read('../docs/ledger-api.md').split('## Errors')[1] ?? ''
  const table = errors.split('## Limits')[0] ?? ''
  const inManual = new Set([...table.matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g)].map(([, name]) => name))
  for (const name of inCode) {
    if (!REDACTED.has(String(name))) assert.ok(inManual.has(name), `${name} is not in the manual`)
  }
  for (const name of inManual) assert.ok(inCode.has(name), `${name} is only in the manual`)
})
