/** The labels by which deployed nodes tell their apps apart; dashboards made for those filter by them. */
export const appLabels = {
  scan: { node_name: 'scan', node_type: 'scan' },
  validator: { node_name: 'validator_backend', node_type: 'validator' },
  participant: { node: 'participant', component: 'participant' },
} as const

export type AppName = keyof typeof appLabels
