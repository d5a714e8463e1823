/** Rows of text in columns, under their headings. */
export const formatTable = (headings: string[], rows: string[][]): string => {
  const cells = [headings, ...rows.map((row) => row.map(printable))]
  const widths = headings.map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Text from a node must not steer the terminal. */
export const printable = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '�')
