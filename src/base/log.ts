import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import pino, { type Logger } from 'pino'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * One JSON object a line in the logstash style that viewers of this ecosystem know, or readable
 * lines when a person watches. Everything goes to standard error; standard output is for answers.
 */
export function createLog(options: {
  level: LogLevel
  pretty: boolean
  stream?: NodeJS.WritableStream
}): Logger {
  const stream = options.stream ?? process.stderr
  return pino(
    {
      level: options.level,
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label.toUpperCase() }) },
      serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
    },
    options.pretty ? prettyStream(stream) : (stream as pino.DestinationStream),
  )
}

const COLOURS: Record<string, 'gray' | 'cyan' | 'yellow' | 'red'> = {
  DEBUG: 'gray',
  INFO: 'cyan',
  WARN: 'yellow',
  ERROR: 'red',
}

function prettyStream(stream: NodeJS.WritableStream): Writable {
  return new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      stream.write(prettyLine(line))
      done()
    },
  })
}

function prettyLine(line: string): string {
  const { '@timestamp': time, level, message, logger_name: _, ...rest } = JSON.parse(line)
  const details = Object.entries(rest)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
  const label = styleText(COLOURS[level] ?? 'gray', level.padEnd(5))
  return `${String(time).slice(11, 23)} ${label} ${message}${details === '' ? '' : ` ${styleText('gray', details)}`}\n`
}
