import type { Problem } from './problem.ts'
import { type Located, lineAndColumn, type Source } from './tree.ts'

/** A name, `=`, and a value: bare, in single quotes (as it is) or in double quotes (with escapes), over lines if quoted. */
const ASSIGNMENT =
  /(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[\s\S])*)"|'([^']*)'|([^\r\n]*))/
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

/** Reads a `.env` file as compose does; a line that is none is a problem with its place. */
export function parseEnvFile(source: Source): {
  variables: Map<string, Located>
  problems: Problem[]
} {
  const variables = new Map<string, Located>()
  const problems: Problem[] = []
  const text = source.text
  let at = 0
  while (at < text.length) {
    const blank = /[\s\uFEFF]*(?:#[^\n]*(?:\n|$)[\s\uFEFF]*)*/y
    blank.lastIndex = at
    blank.exec(text)
    at = blank.lastIndex
    if (at >= text.length) break
    const assignment = new RegExp(ASSIGNMENT, 'y')
    assignment.lastIndex = at
    const match = assignment.exec(text)
    if (match === null) {
      problems.push(lineProblem(source, at))
    } else {
      const [whole, name = '', double, single, bare] = match
      const valueAt =
        at + whole.length - (double ?? single ?? bare ?? '').length - (bare === undefined ? 1 : 0)
      const place = {
        source: { ...source, variable: name },
        ...lineAndColumn(text, valueAt),
        length: Math.max(1, (double ?? single ?? bare ?? '').split('\n')[0]?.length ?? 1),
      }
      variables.set(name, { text: unescapeValue(double, single, bare), place })
      at += whole.length
    }
    const end = text.indexOf('\n', at)
    at = end === -1 ? text.length : end + 1
  }
  return { variables, problems }
}

function unescapeValue(double?: string, single?: string, bare?: string): string {
  if (single !== undefined) return single
  if (double !== undefined) {
    return double.replace(/\\([\s\S])/g, (_, char: string) => ESCAPES[char] ?? char)
  }
  return (bare ?? '').replace(/(?:^|[ \t])#.*$/, '').trim()
}

function lineProblem(source: Source, offset: number): Problem {
  const place = { source, ...lineAndColumn(source.text, offset), length: 1 }
  return {
    severity: 'error',
    rule: 'env-file',
    key: source.name,
    path: source.name,
    place,
    message: 'This line is not of the form NAME=value.',
    hint: 'Write NAME=value, or begin the line with # to make it a comment.',
  }
}
