import {
  checkLabelNames,
  type LabelPair,
  type LabelValue,
  labelText,
  renderLabels,
} from './labels.ts'

/** The value of every label of the series that takes what is beyond the bound. */
export const overflowLabelValue = 'overflow'

type Values<Name extends string> = Readonly<Record<Name, LabelValue>>

/** A metric: its series by label values, or the one series itself when it has no labels. */
export type Labelled<Handle, Name extends string> = ([Name] extends [never] ? Handle : unknown) & {
  /** Looks a series up, or begins it. Keep the handle where it is used often. */
  labels(values: Values<Name>): Handle
  /** Ends a series, such as that of a peer that has gone. Handles that were kept count for nothing then. */
  remove(values: Values<Name>): void
}

type Options<Handle, Name> = {
  name: string
  names: readonly Name[]
  /** Labels that every series of this metric carries. */
  constants: readonly LabelPair[]
  /** The series of the family, by the text of their labels; other declarations may share it. */
  series: Map<string, { handle: Handle }>
  seriesMax: number
  create: (pairs: readonly LabelPair[]) => { handle: Handle }
  onOverflow: () => void
}

/**
 * The series of a metric, no more than `seriesMax`. What comes beyond goes to one overflow series,
 * so a label that a client can choose costs neither memory nor the scraper's patience.
 */
export function createLabelled<Handle extends object, Name extends string>(
  options: Options<Handle, Name>,
): Labelled<Handle, Name> {
  const { name, names, constants, series, seriesMax, create, onOverflow } = options
  checkLabelNames(name, [...constants.map(([constant]) => constant), ...names])
  // The way from values to a handle without rendering them; holds no more than `series` does.
  const handles = new Map<string, Handle>()

  function labels(values: Values<Name>): Handle {
    const key = keyOf(names, values)
    const handle = handles.get(key)
    if (handle !== undefined) return handle
    const pairs = pairsOf((label) => labelText(values[label]))
    const text = renderLabels(pairs)
    const known = series.get(text)
    if (known === undefined && series.size >= seriesMax) {
      onOverflow()
      return overflow()
    }
    const found = (known ?? begin(text, pairs)).handle
    handles.set(key, found)
    return found
  }

  function overflow(): Handle {
    const pairs = pairsOf(() => overflowLabelValue)
    const text = renderLabels(pairs)
    return (series.get(text) ?? begin(text, pairs)).handle
  }

  function begin(text: string, pairs: readonly LabelPair[]): { handle: Handle } {
    const begun = create(pairs)
    series.set(text, begun)
    return begun
  }

  function remove(values: Values<Name>): void {
    handles.delete(keyOf(names, values))
    series.delete(renderLabels(pairsOf((label) => labelText(values[label]))))
  }

  function pairsOf(textOf: (label: Name) => string): LabelPair[] {
    return [...constants, ...names.map((label): LabelPair => [label, textOf(label)])]
  }

  const single = names.length === 0 ? labels({} as Values<Name>) : undefined
  return { ...single, labels, remove } as Labelled<Handle, Name>
}

/** Lengths keep the values apart, whatever characters they hold. */
function keyOf<Name extends string>(names: readonly Name[], values: Values<Name>): string {
  let key = ''
  for (const name of names) {
    const text = labelText(values[name])
    key += `${text.length}:${text}`
  }
  return key
}
