import { invalidArgument, missingField } from '../users/errors.ts'
import { type JsonObject, listField, textField } from '../users/request-fields.ts'
import { blobOf, readBlob } from './blob.ts'
import { asObject } from './json-object.ts'
import type { Ledger } from './ledger.ts'

/** Contracts that a submitter was told of by a stakeholder: more than these are never needed. */
const DISCLOSED_MAX = 1000

/** The ids of the disclosed contracts; each blob must say what the contract says. */
export async function readDisclosed(ledger: Ledger, body: JsonObject): Promise<string[]> {
  const list = listField(body, 'disclosedContracts')
  if (list.length > DISCLOSED_MAX) {
    throw invalidArgument(`a transaction has at most ${DISCLOSED_MAX} disclosed contracts`)
  }
  const ids: string[] = []
  for (const [index, json] of list.entries()) {
    ids.push(await readOne(ledger, asObject(json, `disclosedContracts[${index}]`)))
  }
  return ids
}

async function readOne(ledger: Ledger, disclosed: JsonObject): Promise<string> {
  const blob = textField(disclosed, 'createdEventBlob')
  if (blob === '') throw missingField('DisclosedContract.createdEventBlob')
  const told = readBlob(blob)
  if (told === undefined) {
    throw invalidArgument(
      'Unable to decode disclosed contract event payload: send the createdEventBlob of a created event as it came',
    )
  }
  const contractId = textField(disclosed, 'contractId')
  if (contractId !== '' && contractId !== told.contractId) {
    throw invalidArgument(
      `Mismatch between DisclosedContract.contract_id (${contractId}) and contract_id from decoded DisclosedContract.created_event_blob (${told.contractId})`,
    )
  }
  const templateId = textField(disclosed, 'templateId')
  if (templateId !== '' && ledger.entry(templateId).id !== told.templateId) {
    throw invalidArgument(
      `Mismatch between DisclosedContract.template_id (${templateId}) and template_id from decoded DisclosedContract.created_event_blob (${told.templateId})`,
    )
  }
  const contract = await ledger.contract(told.contractId)
  // One that the ledger does not know is told when a choice wants it.
  if (contract !== undefined && blobOf(contract) !== blob) {
    throw invalidArgument(
      `the createdEventBlob of the disclosed contract ${told.contractId} is not what that contract says; ask its stakeholder for the blob again`,
    )
  }
  return told.contractId
}
