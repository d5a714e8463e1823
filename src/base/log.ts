import { styleText } from 'node:util'
import pino, { type Logger } from 'pino'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** The loggers of a node, one for each part that logs, with one level for all. */
export type Logs = {
  named(name: string): Logger
  level(): LogLevel
  setLevel(level: LogLevel): void
}

/**
 * One JSON object a line in the logstash style that viewers of this ecosystem know, or readable
 * lines when a person watches. Everything goes to standard error; standard output is for answers.
 */
export function createLogs(options: {
  level: LogLevel
  pretty: boolean
  stream?: NodeJS.WritableStream
  /** Texts that must not appear in any line, whoever writes them. */
  secrets?: readonly string[]
}): Logs {
  const stream = options.stream ?? process.stderr
  const hide = createHide(options.secrets ?? [])
  const root = pino(
    {
      level: options.level,
      base: null,
      messageKey: 'message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label.toUpperCase() }), log: toLogstash },
      // Turned into stack_trace by then.
      serializers: { err: () => undefined },
    },
    { write: (line) => void stream.write(options.pretty ? prettyLine(hide(line)) : hide(line)) },
  )
  const loggers = [root]
  return {
    named(name) {
      const logger = root.child({ logger_name: name, thread_name: 'main' })
      loggers.push(logger)
      return logger
    },
    level: () => root.level as LogLevel,
    setLevel(level) {
      for (const logger of loggers) logger.level = level
    },
  }
}

/**
 * Nobody logs a token or a password on purpose, but clients put them where ids belong, and messages of
 * others quote addresses. Whatever looks like a JSON web token (also one that was cut), follows
 * `Bearer`, or is the user part of an address is left out of every line.
 */
const SECRETS: [RegExp, string][] = [
  [/eyJ[\w-]{10,}(?:\.[\w-]*){0,4}/g, '[token]'],
  [/\b(bearer)\s+[\w.~+/=-]{16,}/gi, '$1 [token]'],
  [/:\/\/[^\s/"'@]+@/g, '://[hidden]@'],
]

/** Shorter secrets are words of the language; leaving them out everywhere would hide the message. */
const SECRET_LENGTH_MIN = 6

function createHide(secrets: readonly string[]): (line: string) => string {
  const known = secrets
    .filter((secret) => secret.length >= SECRET_LENGTH_MIN)
    // As it stands in a JSON string, without the quotation marks around it.
    .map((secret) => JSON.stringify(secret).slice(1, -1))
  return (line) => {
    const shaped = SECRETS.reduce((text, [pattern, mark]) => text.replace(pattern, mark), line)
    return known.reduce((text, secret) => text.replaceAll(secret, '[secret]'), shaped)
  }
}

/** The names that viewers look for: `trace-id`, `stack_trace`. */
function toLogstash({ traceId, err, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return {
    ...rest,
    ...(traceId === undefined ? {} : { 'trace-id': traceId }),
    ...(err instanceof Error ? { stack_trace: stackOf(err) } : {}),
  }
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\nCaused by: ${stackOf(error.cause)}` : ''
  return `${error.stack ?? error.message}${cause}`
}

const COLOURS: Record<string, 'gray' | 'cyan' | 'yellow' | 'red'> = {
  TRACE: 'gray',
  DEBUG: 'gray',
  INFO: 'cyan',
  WARN: 'yellow',
  ERROR: 'red',
}

function prettyLine(line: string): string {
  const {
    '@timestamp': time,
    level,
    message,
    logger_name,
    thread_name: _,
    ...record
  } = JSON.parse(line)
  const { stack_trace: stack, ...rest } = record
  const details = Object.entries(rest)
    .map(([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('')
  const label = styleText(COLOURS[level] ?? 'red', String(level).padEnd(5))
  const name = styleText('gray', String(logger_name).replace(/^annals\./, ''))
  const trace = stack === undefined ? '' : `\n${stack}`
  return `${String(time).slice(11, 23)} ${label} ${name}: ${message}${styleText('gray', details)}${trace}\n`
}
