import type { Place } from './tree.ts'

export type Severity = 'error' | 'warning' | 'notice'

export type Problem = {
  readonly severity: Severity
  /** A stable name of the rule, for filters and for CI. */
  readonly rule: string
  /** The key as the manual names it, map keys left out: `walletSweep.receiver`. */
  readonly key: string
  /** The key as it stands in the source: `walletSweep."alice::1220ab".receiver`. */
  readonly path: string
  /** Where; a problem about something that is missing everywhere has no place. */
  readonly place?: Place
  /** A sentence that says what is wrong and why. */
  readonly message: string
  /** The value as written, masked. */
  readonly found?: string
  readonly allowed?: string
  /** What to write instead. */
  readonly hint?: string
  /** The table whose reading failed, for rules that must not call a malformed key missing. */
  readonly file?: string
  /** The key that an unknown one most likely stands for. */
  readonly meant?: string
}

/** Problems in the order in which a reader meets them: by source, line and column. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  const rank = (problem: Problem) =>
    problem.place === undefined
      ? 3
      : { file: 0, variable: 1, flag: 2, secret: 2 }[problem.place.source.kind]
  return problems.toSorted(
    (a, b) =>
      rank(a) - rank(b) ||
      compareText(a.place?.source.name, b.place?.source.name) ||
      (a.place?.line ?? 0) - (b.place?.line ?? 0) ||
      (a.place?.column ?? 0) - (b.place?.column ?? 0),
  )
}

function compareText(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0
}
