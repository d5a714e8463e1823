import { isUtf8 } from 'node:buffer'
import { type PreparedUpdate, prepareLine } from './encode.ts'
import { UpdateError } from './item-fields.ts'
import { guessItems, itemBytes, type PageItems, readItems } from './page-items.ts'
import { isPrintedAs } from './versions.ts'

/** The first updates of a page that came in both encodings, up to the first that is not sound. */
export type PreparedPage = {
  updates: PreparedUpdate[]
  refusal: { index: number; reason: string } | undefined
}

type Borders = { starts: number[]; ends: number[] }
export type PageBorders = { protobuf: Borders; compact: Borders }

/**
 * Checks and encodes what a scan sent: the lossless form as an import does, and the compact form
 * beside it. Usually the compact form is what follows from the lossless one, byte for byte, and is
 * then not even read.
 */
export function preparePage(bodies: {
  protobuf: Buffer
  compact: Buffer
  /** More than this is left out. */
  count: number
  /** Whether the compact form has to be, byte for byte, what follows from the lossless one. */
  isProof?: boolean
  /** Where the items seem to stand, when somebody has looked already. */
  borders?: PageBorders | undefined
}): PreparedPage {
  if (!isUtf8(bodies.protobuf) || !isUtf8(bodies.compact)) {
    return refuse([], 0, 'The answer is not valid UTF-8.')
  }
  const guess = (form: 'protobuf' | 'compact') => {
    const borders = bodies.borders?.[form]
    return borders === undefined ? guessItems(bodies[form]) : { body: bodies[form], ...borders }
  }
  const [protobuf, compact] = [guess('protobuf'), guess('compact')]
  const page =
    protobuf === undefined || compact === undefined
      ? undefined
      : prepareItems(protobuf, compact, bodies)
  if (page !== undefined && (page.refusal === undefined || bodies.isProof)) return page
  const read = { protobuf: readItems(bodies.protobuf), compact: readItems(bodies.compact) }
  if (read.protobuf === undefined || read.compact === undefined) {
    return page ?? refuse([], 0, 'The answer is not a page of updates.')
  }
  return prepareItems(read.protobuf, read.compact, bodies)
}

function prepareItems(
  protobuf: PageItems,
  compact: PageItems,
  { count, isProof = false }: { count: number; isProof?: boolean },
): PreparedPage {
  const updates: PreparedUpdate[] = []
  const length = Math.min(protobuf.starts.length, compact.starts.length, count)
  for (let index = 0; index < length; index += 1) {
    try {
      updates.push(prepareItem(itemBytes(protobuf, index), itemBytes(compact, index), isProof))
    } catch (error) {
      if (!(error instanceof UpdateError)) throw error
      return refuse(updates, index, error.message)
    }
  }
  return { updates, refusal: undefined }
}

function prepareItem(protobuf: Buffer, compact: Buffer, isProof: boolean): PreparedUpdate {
  const text = protobuf.toString('utf8')
  const derived = derive(text)
  if (derived !== undefined && isPrintedAs(derived, compact)) return derived
  if (isProof) throw new UpdateError('compact_json', 'does not follow from protobuf_json')
  return prepareLine(`{"protobuf_json":${text},"compact_json":${compact.toString('utf8')}}`)
}

/** Undefined when the compact form cannot be derived; the other way then says what is wrong, if anything. */
function derive(text: string): PreparedUpdate | undefined {
  try {
    return prepareLine(text)
  } catch (error) {
    if (error instanceof UpdateError) return undefined
    throw error
  }
}

function refuse(updates: PreparedUpdate[], index: number, reason: string): PreparedPage {
  return { updates, refusal: { index, reason } }
}
