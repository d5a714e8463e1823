/** A plot of columns, for a terminal or a file: eighths of a character high. */

const BLOCKS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
const HEIGHT = 8

export type PlotOptions = {
  title: string
  values: readonly number[]
  /** Columns of the plot itself. */
  width: number
  print(value: number): string
  /** Below the left and the right end. */
  from: string
  to: string
}

/** Each column shows the mean of its values. Nothing but text: no colours, no control characters. */
export function plot({ title, values, width, print, from, to }: PlotOptions): string {
  const columns = Math.min(width, Math.max(1, values.length))
  const means = Array.from({ length: columns }, (_, column) => {
    const first = Math.floor((column * values.length) / columns)
    const next = Math.max(first + 1, Math.floor(((column + 1) * values.length) / columns))
    const part = values.slice(first, next)
    return part.reduce((sum, value) => sum + value, 0) / Math.max(1, part.length)
  })
  const top = Math.max(...means, 0)
  const labels = [print(top), print(top / 2), print(0)]
  const margin = Math.max(...labels.map(({ length }) => length))
  const rows = Array.from({ length: HEIGHT }, (_, row) => {
    const label =
      row === 0 ? labels[0] : row === HEIGHT / 2 ? labels[1] : row === HEIGHT - 1 ? labels[2] : ''
    return `${(label ?? '').padStart(margin)} ┤${means.map((mean) => cell(mean, top, row)).join('')}`.trimEnd()
  })
  const gap = Math.max(1, columns - from.length - to.length)
  return [
    title,
    ...rows,
    `${' '.repeat(margin)} └${'─'.repeat(columns)}`,
    `${' '.repeat(margin + 2)}${from}${' '.repeat(gap)}${to}`,
  ].join('\n')
}

function cell(value: number, top: number, row: number): string {
  const eighths = top <= 0 ? 0 : Math.round((value / top) * HEIGHT * 8)
  const inRow = eighths - (HEIGHT - 1 - row) * 8
  return BLOCKS[Math.max(0, Math.min(8, inRow))] as string
}
