import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Authentication, callerOf, guard } from '../users/caller.ts'
import { invalidArgument, missingField } from '../users/errors.ts'
import { bodyOf, type JsonObject, objectField, textField } from '../users/request-fields.ts'
import { transactionJson, updateJson } from './api-json.ts'
import { pastPruned, updateNotFound } from './errors.ts'
import {
  formatFor,
  readTransactionFormat,
  readUpdateFormat,
  requireReader,
  type UpdateFormat,
} from './event-format.ts'
import type { Ledger } from './ledger.ts'
import { partyList, readOffset } from './request-ids.ts'
import type { LedgerUpdate } from './updates-store.ts'

/** Reads of one update, by its id or its offset. */
export const singleUpdateRoutes = async (
  app: FastifyInstance,
  { ledger, authentication }: { ledger: Ledger; authentication: Authentication },
): Promise<void> => {
  const anyone = guard(authentication)
  const finders = {
    id: (body: JsonObject) => ledger.update(textField(body, 'updateId')),
    offset: (body: JsonObject) => updateAt(ledger, body),
  }

  for (const [by, find] of Object.entries(finders)) {
    app.post(`/v2/updates/update-by-${by}`, anyone, async (request) => {
      const body = bodyOf(request)
      const format = readUpdateFormat(ledger, body)
      requireReaderOf(request, format)
      const update = await find(body)
      const shown = update && (await updateJson(ledger, update, format))
      if (shown === undefined) throw updateNotFound()
      return shown
    })

    app.post(`/v2/updates/transaction-by-${by}`, anyone, async (request) => {
      const body = bodyOf(request)
      const transactions = readTransactionWish(ledger, body)
      requireReaderOf(request, { transactions, reassignments: undefined })
      const update = await find(body)
      const transaction = update && (await transactionJson(ledger, update, transactions))
      if (transaction === undefined) throw updateNotFound()
      return { transaction }
    })
  }
}

const updateAt = async (ledger: Ledger, body: JsonObject): Promise<LedgerUpdate | undefined> => {
  const offset = readOffset(body, 'offset')
  if (offset === undefined || offset === 0n) throw missingField('offset')
  const pruned = await ledger.pruned()
  if (offset <= pruned) throw pastPruned(offset, pruned)
  await ledger.refresh()
  const [update] = await ledger.updatesAfter(offset - 1n, 1)
  return update?.offset === offset ? update : undefined
}

/** `transactionFormat`, or the older list of parties. */
const readTransactionWish = (ledger: Ledger, body: JsonObject) => {
  const stated = objectField(body, 'transactionFormat')
  if (stated !== undefined) return readTransactionFormat(ledger, stated)
  const parties = partyList(body, 'requestingParties')
  if (parties.length === 0) throw invalidArgument('transactionFormat is missing')
  return { format: formatFor(parties), shape: 'delta' as const }
}

const requireReaderOf = (request: FastifyRequest, format: UpdateFormat): void => {
  for (const part of [format.transactions?.format, format.reassignments]) {
    if (part !== undefined) requireReader(callerOf(request), part)
  }
}
