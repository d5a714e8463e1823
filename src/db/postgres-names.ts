/**
 * Names under which a server keeps statements that come again and again, so that it neither parses
 * nor plans them each time. A name belongs to one text; whether a connection knows it already is the
 * driver's to remember, so a new connection simply prepares anew.
 */
export type StatementNames = {
  /** Undefined for a statement that is better sent as it is. */
  nameOf(text: string): string | undefined
  /** Rises when names are given out anew; connections from before hold statements that nobody uses. */
  readonly generation: number
  /** Forgets all names: the statements behind them are no longer what they were. */
  renew(): void
  /** From now on nothing is named: somebody between us and the server mixes connections up. */
  giveUp(): void
}

/** A server holds a plan for each of them on each connection; a node has fewer that matter. */
const NAMES_MAX = 256
/** A text that comes for this time is likely to come again. */
const USES_MIN = 5
/** Larger texts are inserts of many rows, of which hardly two are alike. */
const TEXT_CHARACTERS_MAX = 16_384
/** Texts that are counted but not named yet. */
const COUNTED_MAX = 2_000

export function createStatementNames(): StatementNames {
  const names = new Map<string, string>()
  const uses = new Map<string, number>()
  let generation = 0
  let isGivenUp = false

  function renew(): void {
    names.clear()
    uses.clear()
    generation += 1
  }

  return {
    nameOf(text) {
      const known = names.get(text)
      if (known !== undefined || isGivenUp || text.length > TEXT_CHARACTERS_MAX) return known
      const count = (uses.get(text) ?? 0) + 1
      if (count < USES_MIN) {
        if (uses.size >= COUNTED_MAX) uses.clear()
        uses.set(text, count)
        return undefined
      }
      if (names.size >= NAMES_MAX) renew()
      uses.delete(text)
      const name = `annals_${generation}_${names.size}`
      names.set(text, name)
      return name
    },
    get generation() {
      return generation
    },
    renew,
    giveUp() {
      renew()
      isGivenUp = true
    },
  }
}
