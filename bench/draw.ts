// A deterministic source of numbers and hex text. SFC32 is small, fast, and passes the usual tests of randomness; hex
// digits come in blocks, because Node prints a block of bytes as hex far quicker than we could digit by digit.

export type Draw = {
  /** A whole number from 0 up to, not including, the bound. */
  below(bound: number): number
  chance(ratio: number): boolean
  pick<T>(choices: readonly T[]): T
  /** Lower-case hex digits; an even number of them. */
  hex(digits: number): string
}

const BLOCK_WORDS = 4096
const WARM_UP_ROUNDS = 15

export function seededDraw(seed: number): Draw {
  let a = seed >>> 0
  let b = Math.floor(seed / 2 ** 32) >>> 0
  let c = 0x9e3779b9
  let counter = 1

  function word(): number {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return sum >>> 0
  }
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) word()

  const words = new Uint32Array(BLOCK_WORDS)
  const bytes = Buffer.from(words.buffer)
  let block = ''
  let used = 0

  function hex(digits: number): string {
    if (used + digits > block.length) {
      for (let index = 0; index < BLOCK_WORDS; index += 1) words[index] = word()
      block = bytes.toString('hex')
      used = 0
    }
    used += digits
    return block.slice(used - digits, used)
  }

  return {
    below: (bound) => Math.floor((word() / 2 ** 32) * bound),
    chance: (ratio) => word() / 2 ** 32 < ratio,
    pick: <T>(choices: readonly T[]) =>
      choices[Math.floor((word() / 2 ** 32) * choices.length)] as T,
    hex,
  }
}
