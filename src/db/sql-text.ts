import assert from 'node:assert/strict'

// One piece of SQL text: a quoted string or identifier, a comment, a dollar-quoted body, or one
// character. Placeholders and semicolons count only where they stand as a character of their own.
const piece =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$([a-z_]*)\$[\s\S]*?\$\1\$|[\s\S]/gi

/** The statements of a script, without their semicolons; pieces that hold only comments are left out. */
export function splitStatements(script: string): string[] {
  const statements: string[] = []
  let text = ''
  let blank = true
  for (const part of pieces(script)) {
    if (part === ';') {
      if (!blank) statements.push(text.trim())
      text = ''
      blank = true
      continue
    }
    text += part
    if (!isComment(part) && part.trim() !== '') blank = false
  }
  if (!blank) statements.push(text.trim())
  for (const statement of statements) {
    // The body of a trigger has semicolons of its own, and its language differs between the engines.
    assert(!/^create\s+(temp\s+)?trigger\b/i.test(statement), 'triggers are not supported')
  }
  return statements
}

/** `?` placeholders rewritten to PostgreSQL's `$1`, `$2`… and their number. */
export function numberPlaceholders(sql: string): { text: string; count: number } {
  let count = 0
  const text = replacePlaceholders(sql, () => {
    count += 1
    return `$${count}`
  })
  return { text, count }
}

/** The statement with every `?` placeholder replaced. */
export function replacePlaceholders(sql: string, replacement: (index: number) => string): string {
  let text = ''
  let index = 0
  for (const part of pieces(sql)) {
    if (part === '?') {
      text += replacement(index)
      index += 1
    } else text += part
  }
  return text
}

/** Engines differ in what they do with a second statement in one text; SQLite drops it in silence. */
export function assertOneStatement(sql: string): void {
  assert(splitStatements(sql).length === 1, `exactly one statement is expected: ${sql}`)
}

function pieces(sql: string): string[] {
  return sql.match(piece) ?? []
}

function isComment(part: string): boolean {
  return part.startsWith('--') || part.startsWith('/*')
}
