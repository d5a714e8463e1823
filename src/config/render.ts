import { styleText } from 'node:util'
import type { Problem, Severity } from './problem.ts'
import { looksSecret, maskText } from './secret.ts'
import type { Place } from './tree.ts'

/** Longer lines are data, not settings, and are not shown. */
const LINE_LENGTH_MAX = 2000
/** Wider lines are cut around the caret. */
const EXCERPT_WIDTH = 120

export type RenderOptions = { readonly colours: boolean; readonly secretTexts: ReadonlySet<string> }

const COLOURS = { error: 'red', warning: 'yellow', notice: 'cyan' } as const

export function renderProblems(problems: readonly Problem[], options: RenderOptions): string {
  const paint = painter(options.colours)
  const blocks = problems.map((problem) => renderProblem(problem, options, paint))
  return [...blocks, renderSummary(problems, paint), ''].join('\n')
}

type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

function painter(colours: boolean): Paint {
  return (style, text) => (colours ? styleText(style, text, { validateStream: false }) : text)
}

function renderProblem(problem: Problem, options: RenderOptions, paint: Paint): string {
  const { severity, place } = problem
  const head = `${paint('bold', placeText(place))} ${paint(COLOURS[severity], severity)} ${paint('bold', problem.path)}`
  const lines = [head, `  ${problem.message}`]
  if (severity === 'notice') return `${lines.join('\n')}\n`
  const excerpt = place === undefined ? undefined : excerptOf(problem, place, options.secretTexts)
  if (excerpt !== undefined) {
    const gutter = String(place?.line).length
    lines.push(`  ${paint('dim', `${place?.line} |`)} ${excerpt.line}`)
    if (excerpt.caret !== undefined) {
      lines.push(
        `  ${' '.repeat(gutter)} ${paint('dim', '|')} ${paint(COLOURS[severity], excerpt.caret)}`,
      )
    }
  }
  if (problem.found !== undefined) lines.push(`  found:   ${JSON.stringify(problem.found)}`)
  if (problem.allowed !== undefined) lines.push(`  allowed: ${problem.allowed}`)
  if (problem.hint !== undefined) lines.push(`  ${paint('green', 'try:')}     ${problem.hint}`)
  return `${lines.join('\n')}\n`
}

export function placeText(place: Place | undefined): string {
  if (place === undefined) return 'environment'
  if (place.source.kind === 'flag') return place.source.name
  return `${place.source.name}:${place.line}:${place.column}`
}

export function countBySeverity(problems: readonly Problem[]): Record<Severity, number> {
  const counts = { error: 0, warning: 0, notice: 0 }
  for (const { severity } of problems) counts[severity]++
  return counts
}

function renderSummary(problems: readonly Problem[], paint: Paint): string {
  const counts = countBySeverity(problems)
  const words = (['error', 'warning', 'notice'] as const)
    .filter((severity) => counts[severity] > 0)
    .map((severity) =>
      paint(
        COLOURS[severity],
        `${counts[severity]} ${severity}${counts[severity] === 1 ? '' : 's'}`,
      ),
    )
  if (counts.error > 0) return `The configuration is refused: ${words.join(', ')}.`
  const sound = paint('green', 'The configuration is sound')
  return words.length === 0 ? `${sound}.` : `${sound}: ${words.join(', ')}.`
}

/** The line with a caret, without anything secret; nothing where the line itself may be one. */
function excerptOf(
  problem: Problem,
  place: Place,
  secretTexts: ReadonlySet<string>,
): { line: string; caret: string | undefined } | undefined {
  const { source, line, column } = place
  if (source.secret || source.text === '' || place.length === 0) return undefined
  const rows = source.text.split(/\r?\n/)
  const row = rows[line - 1]
  if (row === undefined || row.length > LINE_LENGTH_MAX) return undefined
  if (isBesideSecretName(rows, line - 1)) return undefined
  const isKey = problem.rule === 'unknown-key'
  const end = column - 1 + place.length
  const shown =
    isKey && end < row.length ? `${row.slice(0, end)}${row[end] === ':' ? ':' : ''} …` : row
  const masked = maskText(shown, secretTexts)
  const start = Math.max(0, Math.min(column - 1 - EXCERPT_WIDTH / 2, masked.length - EXCERPT_WIDTH))
  const cut = masked.slice(start, start + EXCERPT_WIDTH)
  if (masked.slice(0, column - 1) !== row.slice(0, column - 1))
    return { line: cut, caret: undefined }
  const width = Math.max(1, Math.min(place.length, cut.length - (column - 1 - start)))
  const indent = cut.slice(0, column - 1 - start).replace(/[^\t]/g, ' ')
  return { line: cut, caret: `${indent}${'^'.repeat(width)}` }
}

/** `password:` and its text on the next line, or `- name: DB_PASSWORD` beside `value: …`: the name tells what the line holds. */
function isBesideSecretName(rows: readonly string[], index: number): boolean {
  const above = rows[index - 1] ?? ''
  if (/[=:]\s*$/.test(above) && looksSecret(above)) return true
  if (!/^\s*(?:- )?value\s*:/.test(rows[index] ?? '')) return false
  return [rows[index - 1], rows[index + 1]].some(
    (row) => /name\s*:/.test(row ?? '') && looksSecret(row ?? ''),
  )
}

export type JsonProblem = {
  severity: Severity
  rule: string
  key: string
  path: string
  source: string | null
  line: number | null
  column: number | null
  message: string
  found: string | null
  allowed: string | null
  hint: string | null
}

export function jsonProblem(problem: Problem): JsonProblem {
  const { severity, rule, key, path, place, message } = problem
  return {
    severity,
    rule,
    key,
    path,
    source: place?.source.name ?? null,
    line: place?.line ?? null,
    column: place?.column ?? null,
    message,
    found: problem.found ?? null,
    allowed: problem.allowed ?? null,
    hint: problem.hint ?? null,
  }
}

const SARIF_LEVELS = { error: 'error', warning: 'warning', notice: 'note' } as const

/** SARIF 2.1.0, as code-scanning services take it. */
export function sarifLog(problems: readonly Problem[], version: string): unknown {
  const rules = [...new Set(problems.map(({ rule }) => rule))].sort()
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'annals check', version, rules: rules.map((id) => ({ id })) } },
        results: problems.map((problem) => ({
          ruleId: problem.rule,
          ruleIndex: rules.indexOf(problem.rule),
          level: SARIF_LEVELS[problem.severity],
          message: {
            text: [problem.message, problem.hint].filter((text) => text !== undefined).join(' '),
          },
          locations: [sarifLocation(problem)],
        })),
      },
    ],
  }
}

function sarifLocation({ key, place }: Problem): unknown {
  const logicalLocations = [{ fullyQualifiedName: key }]
  if (place === undefined || place.source.kind === 'variable' || place.source.kind === 'flag') {
    return { logicalLocations }
  }
  const { line, column, length, source } = place
  return {
    logicalLocations,
    physicalLocation: {
      artifactLocation: { uri: encodeURI(source.name.replaceAll('\\', '/')) },
      region: { startLine: line, startColumn: column, endColumn: column + Math.max(1, length) },
    },
  }
}
