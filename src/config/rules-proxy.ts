import { type ProxyReading, parseJvmOptions, proxyOf } from './jvm-options.ts'
import {
  APPS,
  type App,
  isMalformed,
  nameOf,
  otherApp,
  type RuleContext,
  subjectAt,
  subjectOf,
  tell,
} from './rule-context.ts'
import type { Place } from './tree.ts'

export function proxyReading(context: Pick<RuleContext, 'settings'>, app: App): ProxyReading {
  return proxyOf(parseJvmOptions(context.settings.value<string>(app, 'additionalJvmOptions') ?? ''))
}

export function checkProxy(context: RuleContext): void {
  const readings = {
    validator: proxyReading(context, 'validator'),
    participant: proxyReading(context, 'participant'),
  }
  const places = new Set<Place>()
  for (const app of APPS) {
    const reading = readings[app]
    const options = context.settings.get(app, 'additionalJvmOptions')
    // One variable may set the options of both.
    if (!('faults' in reading) || options === undefined || places.has(options.place)) continue
    places.add(options.place)
    const isVariable = options.name !== options.path
    for (const { property, reason } of reading.faults)
      tell(context, 'error', {
        rule: 'proxy',
        about: subjectOf(options),
        message: `${nameOf(options)}${isVariable ? '' : ` of the ${app}`} sets a proxy wrongly at ${property}: ${reason}.`,
        hint: `${options.name}${isVariable ? '=' : ': '}-Dhttps.proxyHost=proxy.acme.example -Dhttps.proxyPort=3128`,
      })
  }
  const { validator, participant } = readings
  if ('faults' in validator || 'faults' in participant) return
  for (const app of APPS) {
    const [here, there] = app === 'validator' ? [validator, participant] : [participant, validator]
    if (here.proxy === undefined || there.proxy !== undefined) continue
    if (
      context.sources.broken.has(otherApp(app)) ||
      isMalformed(context, otherApp(app), 'additionalJvmOptions')
    )
      continue
    tell(context, 'error', {
      rule: 'proxy-both',
      about: subjectAt(context, app, 'additionalJvmOptions'),
      message: `additionalJvmOptions sets a proxy in the ${app} values only. It must stand in both values files, or the ${otherApp(app)} cannot reach the network.`,
      hint: `Write the same additionalJvmOptions in the ${otherApp(app)} values.`,
    })
  }
  if (
    validator.proxy !== undefined &&
    participant.proxy !== undefined &&
    JSON.stringify(validator) !== JSON.stringify(participant)
  ) {
    tell(context, 'warning', {
      rule: 'proxy-both',
      about: subjectAt(context, 'participant', 'additionalJvmOptions'),
      message:
        'additionalJvmOptions sets different proxies in the two values files; this node is one process and uses the one of the validator values.',
    })
  }
}

/** The resource is of a kind that a cluster learns from the Prometheus operator. */
export function checkMetrics(context: RuleContext): void {
  for (const app of APPS) {
    const enable = context.settings.get(app, 'metrics.enable')
    if (enable?.value !== true) continue
    tell(context, 'notice', {
      rule: 'service-monitor',
      about: subjectOf(enable),
      message:
        'metrics.enable creates a service monitor, which needs the Prometheus operator in the cluster. The metrics are served in any case.',
    })
  }
}
