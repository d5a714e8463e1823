// What a section of the bench reports, and how it is shown.

export type Cell = string | number | undefined

export type Column = {
  key: string
  title: string
  /** Digits behind the point; numbers have none unless given. */
  digits?: number
}

export type Table = {
  title: string
  columns: Column[]
  rows: Record<string, Cell>[]
  /** What a reader must know to read the numbers rightly. */
  notes: string[]
}

/** A goal of the product beside what was measured; never a test, because machines differ. */
export type Aim = { aim: string; measured: number; wanted: number; isUpperBound: boolean }

export type SectionReport = { tables: Table[]; aims: Aim[] }

export function printTable(table: Table): string {
  const cells = table.rows.map((row) =>
    table.columns.map((column) => printCell(row[column.key], column)),
  )
  const widths = table.columns.map((column, i) =>
    Math.max(column.title.length, ...cells.map((row) => (row[i] as string).length)),
  )
  const isText = table.columns.map((column) =>
    table.rows.some((row) => typeof row[column.key] === 'string'),
  )
  const line = (texts: string[]) =>
    texts
      .map((text, i) =>
        isText[i] ? text.padEnd(widths[i] as number) : text.padStart(widths[i] as number),
      )
      .join('  ')
      .trimEnd()
  const lines = [
    table.title,
    '',
    line(table.columns.map((column) => column.title)),
    line(widths.map((width) => '-'.repeat(width))),
    ...cells.map(line),
    ...table.notes.map((note) => `\n${note}`),
  ]
  return `${lines.join('\n')}\n`
}

export function printAims(aims: Aim[]): string {
  return printTable({
    title: 'Aims',
    columns: [
      { key: 'aim', title: 'aim' },
      { key: 'measured', title: 'measured' },
      { key: 'wanted', title: 'wanted' },
      { key: 'verdict', title: '' },
    ],
    rows: aims.map((aim) => ({
      aim: aim.aim,
      measured: printNumber(aim.measured),
      wanted: `${aim.isUpperBound ? 'at most' : 'at least'} ${printNumber(aim.wanted)}`,
      verdict: isMet(aim) ? 'met' : 'MISSED',
    })),
    notes: [],
  })
}

export function isMet({ measured, wanted, isUpperBound }: Aim): boolean {
  return isUpperBound ? measured <= wanted : measured >= wanted
}

export function median(numbers: number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

function printCell(cell: Cell, column: Column): string {
  if (cell === undefined) return ''
  if (typeof cell === 'string') return cell
  const digits = column.digits ?? 0
  return cell.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}

function printNumber(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : 0 })
}
