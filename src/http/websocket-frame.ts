/** The frames of RFC 6455, as a server reads and writes them: masked ones come, plain ones go. */

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  protocol: 1002,
  unsupported: 1003,
  notText: 1007,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
} as const

export type Frame = { opcode: number; isFinal: boolean; payload: Buffer; bytes: number }

/** Frames of a message together. Requests are small; a client that sends more is not one of ours. */
export const MESSAGE_BYTES_MAX = 1024 * 1024
/** What pings, pongs and closes may carry. */
const CONTROL_BYTES_MAX = 125
const HEAD_BYTES_MIN = 2
const MASK_BYTES = 4

/** The first frame of the bytes; how many bytes it takes at least; or why the connection must end. */
export type Parsed = { frame: Frame } | { needed: number } | { refused: number }

export function parseFrame(bytes: Buffer): Parsed {
  if (bytes.length < HEAD_BYTES_MIN) return { needed: HEAD_BYTES_MIN }
  const first = bytes[0] as number
  const second = bytes[1] as number
  const opcode = first & 0x0f
  const isFinal = (first & 0x80) !== 0
  const isMasked = (second & 0x80) !== 0
  const isExtended = (first & 0x70) !== 0
  if (isExtended || !isMasked || !isKnown(opcode)) return { refused: CLOSE.protocol }
  let length = second & 0x7f
  if (isControl(opcode) && (!isFinal || length > CONTROL_BYTES_MAX)) {
    return { refused: CLOSE.protocol }
  }
  let at = HEAD_BYTES_MIN
  if (length === 126) {
    at += 2
    if (bytes.length < at) return { needed: at }
    length = bytes.readUInt16BE(HEAD_BYTES_MIN)
  } else if (length === 127) {
    at += 8
    if (bytes.length < at) return { needed: at }
    length = Number(bytes.readBigUInt64BE(HEAD_BYTES_MIN))
  }
  if (length > MESSAGE_BYTES_MAX) return { refused: CLOSE.tooBig }
  const end = at + MASK_BYTES + length
  if (bytes.length < end) return { needed: end }
  const mask = bytes.subarray(at, at + MASK_BYTES)
  const payload = Buffer.from(bytes.subarray(at + MASK_BYTES, end))
  for (let i = 0; i < payload.length; i += 1) {
    payload[i] = (payload[i] as number) ^ (mask[i % MASK_BYTES] as number)
  }
  return { frame: { opcode, isFinal, payload, bytes: end } }
}

export function makeFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const size = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const head = Buffer.alloc(size)
  head[0] = 0x80 | opcode
  if (size === 2) head[1] = length
  else if (size === 4) {
    head[1] = 126
    head.writeUInt16BE(length, 2)
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}

export function makeClose(code: number): Buffer {
  const payload = Buffer.alloc(2)
  payload.writeUInt16BE(code)
  return makeFrame(OPCODE.close, payload)
}

function isKnown(opcode: number): boolean {
  return Object.values(OPCODE).some((known) => known === opcode)
}

function isControl(opcode: number): boolean {
  return opcode >= OPCODE.close
}
