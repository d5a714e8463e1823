import type { DeployRequest } from './request.ts'

/** A variable of the container whose text is known when the container starts, not before. */
export type ReferredVariable = { readonly name: string; readonly valueFrom: object }

/** The variables of the values files that take their text from the cluster. */
export function referredVariables({ settings }: DeployRequest): ReferredVariable[] {
  const variables = new Map<string, ReferredVariable>()
  for (const file of ['validator', 'participant'] as const) {
    const items = settings.value<unknown[]>(file, 'additionalEnvVars') ?? []
    for (const index of items.keys()) {
      const at = `additionalEnvVars[${index}]`
      const value = <T>(path: string) => settings.value<T>(file, `${at}.${path}`)
      const name = value<string>('name')
      const valueFrom = sourceOf(value)
      if (name !== undefined && valueFrom !== undefined) variables.set(name, { name, valueFrom })
    }
  }
  return [...variables.values()]
}

function sourceOf(value: <T>(path: string) => T | undefined): object | undefined {
  const name = value<string>('valueFrom.secretKeyRef.name')
  const key = value<string>('valueFrom.secretKeyRef.key')
  const optional = value<boolean>('valueFrom.secretKeyRef.optional')
  if (name !== undefined && key !== undefined) {
    return { secretKeyRef: { name, key, ...(optional === undefined ? {} : { optional }) } }
  }
  for (const kind of ['fieldRef', 'configMapKeyRef']) {
    const source = value<object>(`valueFrom.${kind}`)
    if (source !== undefined) return { [kind]: source }
  }
  return undefined
}
