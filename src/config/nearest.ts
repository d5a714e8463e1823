/** Longer words are not compared: no key is that long, and the table would grow with the input. */
const WORD_LENGTH_MAX = 64

/** The candidate that a typing mistake most likely meant, if one is near enough. */
export function nearestWord(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > WORD_LENGTH_MAX) return undefined
  const wanted = normalize(word)
  let best: string | undefined
  let bestDistance = Math.min(3, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, normalize(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** `party_hint`, `party-hint` and `partyHint` are one word to a hurried writer. */
function normalize(word: string): string {
  return word.toLowerCase().replace(/[-_\s]/g, '')
}

/** Insertions, deletions, replacements and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let distance = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + cost,
      )
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, (before[j - 2] as number) + 1)
      }
      next.push(distance)
    }
    before = row
    row = next
  }
  return row[b.length] as number
}
