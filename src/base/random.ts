import { createHash } from 'node:crypto'

/** Numbers that look random and are the same for the same seed: each is at least 0 and below `n`. */
export type Random = (n: number) => number

export function createRandom(seed: string): Random {
  let drawn = 0
  return (n) => {
    drawn += 1
    const bytes = createHash('sha256').update(`${seed}/${drawn}`).digest()
    return bytes.readUIntBE(0, 6) % n
  }
}
