import { Transform } from 'node:stream'

/**
 * Cuts a stream of zstd frames such that no chunk holds bytes of two. Node's decompressor silently
 * drops whatever follows the end of a frame in the same chunk, and large files are made of many
 * frames. Also refuses a stream that ends inside a frame.
 */
export function cutZstdFrames(): Transform {
  let state: State = { kind: 'header', held: Buffer.alloc(0) }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        let rest = chunk
        while (rest.length > 0) {
          const step = advance(state, rest)
          state = step.state
          if (step.bytes.length > 0) this.push(step.bytes)
          rest = rest.subarray(step.taken)
        }
        done()
      } catch (error) {
        done(error as Error)
      }
    },
    flush(done) {
      const isBetweenFrames = state.kind === 'header' && state.held.length === 0
      done(isBetweenFrames ? null : new Error('The zstd data ends in the middle of a frame.'))
    },
  })
}

/**
 * header: collecting a frame's header; block: collecting a block's header of three bytes; body:
 * passing on the bytes of a block; skip: passing over a skippable frame.
 */
type State =
  | { kind: 'header'; held: Buffer }
  | { kind: 'block'; held: Buffer; hasChecksum: boolean }
  | { kind: 'body'; left: number; isLast: boolean; hasChecksum: boolean }
  | { kind: 'skip'; left: number }

type Step = { state: State; bytes: Buffer; taken: number }

const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const NOTHING = Buffer.alloc(0)

function advance(state: State, chunk: Buffer): Step {
  switch (state.kind) {
    case 'header': {
      const held = Buffer.concat([state.held, chunk.subarray(0, 1)])
      return { ...readHeader(held), taken: 1 }
    }
    case 'block': {
      const held = Buffer.concat([state.held, chunk.subarray(0, 3 - state.held.length)])
      const taken = held.length - state.held.length
      if (held.length < 3) return { state: { ...state, held }, bytes: NOTHING, taken }
      const header = held.readUIntLE(0, 3)
      const isRunLength = ((header >> 1) & 3) === 1
      const isLast = (header & 1) === 1
      const checksum = isLast && state.hasChecksum ? 4 : 0
      const left = (isRunLength ? 1 : header >> 3) + checksum
      const next: State = { kind: 'body', left, isLast, hasChecksum: state.hasChecksum }
      return { state: left === 0 ? afterBlock(next) : next, bytes: held, taken }
    }
    case 'body': {
      const bytes = chunk.subarray(0, state.left)
      const next = { ...state, left: state.left - bytes.length }
      return { state: next.left === 0 ? afterBlock(next) : next, bytes, taken: bytes.length }
    }
    case 'skip': {
      const taken = Math.min(state.left, chunk.length)
      const left = state.left - taken
      return {
        state: left === 0 ? { kind: 'header', held: NOTHING } : { kind: 'skip', left },
        bytes: NOTHING,
        taken,
      }
    }
  }
}

function afterBlock(block: { isLast: boolean; hasChecksum: boolean }): State {
  return block.isLast
    ? { kind: 'header', held: NOTHING }
    : { kind: 'block', held: NOTHING, hasChecksum: block.hasChecksum }
}

function readHeader(held: Buffer): Omit<Step, 'taken'> {
  const waiting = { state: { kind: 'header', held }, bytes: NOTHING } as const
  if (held.length < 5) return waiting
  const magic = held.readUInt32LE(0)
  if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
    if (held.length < 8) return waiting
    const left = held.readUInt32LE(4)
    return {
      state: left === 0 ? { kind: 'header', held: NOTHING } : { kind: 'skip', left },
      bytes: NOTHING,
    }
  }
  if (magic !== MAGIC) throw new Error('The data is not zstd, or has other data behind its end.')
  const descriptor = held[4] as number
  const isSingleSegment = (descriptor >> 5) & 1
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] as number
  const sizeBytes = [isSingleSegment, 2, 4, 8][descriptor >> 6] as number
  if (held.length < 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes + sizeBytes) return waiting
  const hasChecksum = ((descriptor >> 2) & 1) === 1
  return { state: { kind: 'block', held: NOTHING, hasChecksum }, bytes: held }
}
