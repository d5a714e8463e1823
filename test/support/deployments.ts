import assert from 'node:assert/strict'
import { stringify } from 'yaml'
import { type DeployArguments, deployRequest } from '../../src/cli/deploy-files.ts'
import { readConfig } from '../../src/config/config.ts'
import { ALL_PARTS } from '../../src/config/parts.ts'
import type { DeployRequest } from '../../src/deploy/request.ts'
import { errorsOf, requestFor, withFiles } from './config-files.ts'

/** What would be deployed from files, and from a directory `secrets/` among them. */
export function deploymentOf(
  files: Record<string, string>,
  env: Record<string, string> = {},
  args: DeployArguments = {},
): DeployRequest {
  using directory = withFiles(files)
  const request = requestFor(directory.dir, files, env)
  const reading = readConfig(request, { parts: ALL_PARTS, lenient: args.lenient ?? false })
  assert.deepEqual(
    errorsOf(reading).map(({ message }) => message),
    [],
  )
  return deployRequest(reading, request, args)
}

export type Values = Readonly<Record<string, unknown>>

/** The values files, by name, of settings given as objects. */
export function valuesFiles(values: {
  validator?: Values
  participant?: Values
  postgres?: Values
}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([file, content]) => [`${file}-values.yaml`, stringify(content)]),
  )
}

export const PASSWORD_FILE = { 'secrets/postgres-secrets/postgresPassword': 'not-to-be-printed' }

/** Both apps on one PostgreSQL server. */
export const ON_POSTGRES = {
  validator: { persistence: { host: 'postgres' } },
  participant: { persistence: { host: 'postgres', schema: 'participant' } },
}
