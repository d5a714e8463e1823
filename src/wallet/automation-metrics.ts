import type { Registry } from '../metrics/registry.ts'
import type { RunReport } from './automation-state.ts'

/** Counts runs of automations, under the names that deployed nodes use for theirs. */
export function measureAutomations(registry: Registry): (run: RunReport) => void {
  const labels = ['trigger_name', 'trigger_type', 'party'] as const
  const latency = registry.histogram({
    name: 'splice_trigger_latency_duration_seconds',
    help: 'Time of a run of an automation.',
    labels,
  })
  const iterations = registry.counter({
    name: 'splice_trigger_iterations_total',
    help: 'Runs of an automation, whether or not there was something to do.',
    labels,
  })
  const completed = registry.counter({
    name: 'splice_trigger_completed_total',
    help: 'Runs of an automation that did something, or failed at it.',
    labels: [...labels, 'outcome'],
  })
  const attempted = registry.counter({
    name: 'splice_trigger_attempted_total',
    help: 'Runs of an automation that tried to do something, by the code of the error.',
    labels: [...labels, 'error_code_id'],
  })
  const inARow = registry.gauge({
    name: 'annals_automation_failures_in_a_row',
    help: 'Runs of an automation that have failed since the last that did not.',
    labels: ['trigger_name', 'party'],
  })
  return ({ name, party, outcome, seconds, errorCode, failuresInARow, isEventDriven }) => {
    const of = {
      trigger_name: name,
      trigger_type: isEventDriven ? 'taskbased' : 'polling',
      party,
    }
    latency.labels(of).observe(seconds)
    iterations.labels(of).inc()
    if (outcome !== 'waited') {
      completed.labels({ ...of, outcome }).inc()
      attempted.labels({ ...of, error_code_id: errorCode === '' ? 'none' : errorCode }).inc()
    }
    inARow.labels({ trigger_name: name, party }).set(failuresInARow)
  }
}
