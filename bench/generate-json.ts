// JSON text of values, events and times, written straight to strings for speed: every text put in is free of
// characters that JSON escapes.

export const NONE = '{"optional":{}}'

export const party = (id: string) => `{"party":"${id}"}`
export const contract = (id: string) => `{"contractId":"${id}"}`
export const numeric = (decimal: string) => `{"numeric":"${decimal}"}`
export const text = (value: string) => `{"text":"${value}"}`
export const some = (value: string) => `{"optional":{"value":${value}}}`
export const enumeration = (name: string) => `{"enum":{"constructor":"${name}"}}`
export const variant = (name: string, value: string) =>
  `{"variant":{"constructor":"${name}","value":${value}}}`
export const roundRecord = (round: number) => record([['number', `{"int64":"${round}"}`]])

export function record(fields: [label: string, value: string][]): string {
  let inside = ''
  for (const [label, value] of fields) {
    inside += `${inside === '' ? '' : ','}{"label":"${label}","value":${value}}`
  }
  return `{"record":{"fields":[${inside}]}}`
}

export function elements(values: string[]): string {
  return values.length === 0 ? '{"list":{}}' : `{"list":{"elements":[${values.join()}]}}`
}

export function genMap(entries: [key: string, value: string][]): string {
  return `{"genMap":{"entries":[${entries.map(([key, value]) => `{"key":${key},"value":${value}}`).join()}]}}`
}

export function textMap(entries: [key: string, value: string][]): string {
  return `{"textMap":{"entries":[${entries.map(([key, value]) => `{"key":"${key}","value":${value}}`).join()}]}}`
}

/** Event ids of a transaction as a JSON array. */
export function list(updateId: string, indexes: number[]): string {
  return `[${indexes.map((index) => `"${updateId}:${index}"`).join()}]`
}

export function created(
  eventId: string,
  event: {
    contract: string
    template: string
    package: string
    fields: string
    createdAt: string
    signatories: string[]
    observers: string[]
  },
): string {
  const head = `{"event_type":"created_event","event_id":"${eventId}","contract_id":"${event.contract}","template_id":"${event.template}","package_name":"${event.package}"`
  return `${head},"create_arguments":${event.fields},"created_at":"${event.createdAt}","signatories":${texts(event.signatories)},"observers":${texts(event.observers)}}`
}

export function exercised(
  eventId: string,
  event: {
    contract: string
    template: string
    package: string
    choice: string
    argument: string
    result: string
    children: string
    consuming: boolean
    actors: string[]
    interface?: string | undefined
  },
): string {
  const inherited = event.interface === undefined ? '' : `,"interface_id":"${event.interface}"`
  const head = `{"event_type":"exercised_event","event_id":"${eventId}","contract_id":"${event.contract}","template_id":"${event.template}","package_name":"${event.package}"`
  const body = `,"choice":"${event.choice}","choice_argument":${event.argument},"child_event_ids":${event.children},"exercise_result":${event.result}`
  return `${head}${body},"consuming":${event.consuming},"acting_parties":${texts(event.actors)}${inherited}}`
}

/** Six fraction digits, as record times are printed. */
export function longTime(micros: number): string {
  const millis = Math.floor(micros / 1000)
  const rest = `${micros - millis * 1000}`.padStart(3, '0')
  return `${new Date(millis).toISOString().slice(0, -1)}${rest}Z`
}

/** No fraction, three or six digits, as effective times are printed. */
export function instant(micros: number): string {
  if (micros % 1000 !== 0) return longTime(micros)
  const printed = new Date(micros / 1000).toISOString()
  return micros % 1_000_000 === 0 ? printed.replace('.000Z', 'Z') : printed
}

/** Without trailing zeros, as creation times are printed. */
export function shortTime(micros: number): string {
  return longTime(micros).replace(/\.?0*Z$/, 'Z')
}

function texts(values: string[]): string {
  return values.length === 0 ? '[]' : `["${values.join('","')}"]`
}
