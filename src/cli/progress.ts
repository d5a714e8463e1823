import { printDuration, printNumber, type Terminal } from './output.ts'

/** What long work reports: how far it is, of how much, in units of its own. */
export type Report = {
  /** Undefined when nobody knows how much there is, as when reading a pipe. */
  total: number | undefined
  done: number
  updates: number
  note: string
}

export type Progress = { report(report: Report): void; end(): void }

const INTERVAL_MS = 100
const JSON_INTERVAL_MS = 1000
const BAR_WIDTH = 24

/** A bar on a terminal, a JSON line a second with --json, otherwise nothing. */
export function startProgress(
  terminal: Terminal,
  options: { json: boolean; name: string },
): Progress {
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY
  let latest: Report | undefined
  const isShown = options.json || terminal.isInteractive
  const interval = options.json ? JSON_INTERVAL_MS : INTERVAL_MS

  function show(report: Report): void {
    const seconds = Math.max(0.001, (performance.now() - startedAt) / 1000)
    if (options.json) {
      terminal.stdout.write(`${JSON.stringify(jsonLine(options.name, report, seconds))}\n`)
    } else {
      terminal.stderr.write(`\r\u001b[2K${bar(report, seconds)}`)
    }
  }

  return {
    report(report) {
      latest = report
      if (!isShown || performance.now() - shownAt < interval) return
      shownAt = performance.now()
      show(report)
    },
    end() {
      if (!isShown || latest === undefined) return
      show(latest)
      if (!options.json) terminal.stderr.write('\n')
    },
  }
}

function bar(report: Report, seconds: number): string {
  const rate = `${printNumber(report.updates / seconds)} updates/s`
  const counts = `${printNumber(report.updates)} updates, ${report.note}, ${rate}`
  if (report.total === undefined) return counts
  const share = report.total === 0 ? 1 : Math.min(1, report.done / report.total)
  const filled = Math.round(share * BAR_WIDTH)
  const left = share === 0 ? Number.POSITIVE_INFINITY : (seconds / share) * (1 - share)
  const cells = `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}`
  return `${cells} ${Math.floor(share * 100)} %  ${counts}, ${printDuration(left)} left`
}

function jsonLine(name: string, report: Report, seconds: number) {
  const { total, done, updates } = report
  return {
    event: 'progress',
    command: name,
    updates,
    done,
    ...(total === undefined ? {} : { total }),
    updatesPerSecond: Math.round(updates / seconds),
  }
}
