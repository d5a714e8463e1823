import { nameValues } from './container.ts'
import { databaseServers, PASSWORD_ENTRY } from './database-server.ts'
import { filesInSecret } from './kubernetes-files.ts'
import { podSettings } from './pod.ts'
import type { DeployRequest } from './request.ts'
import { secretsUsed } from './secrets.ts'

/** Secrets that the operator makes from what may not be printed. */
export const VALUES_SECRET = 'annals-values'
export const ENVIRONMENT_SECRET = 'annals-environment'
export const FILES_SECRET = 'annals-files'

/** What must be in the cluster before: the secrets, by the commands that make them. */
export function secretCommands(request: DeployRequest): string[] {
  const { settings } = request
  const create = (name: string, sources: readonly string[]) =>
    `  kubectl create secret generic ${name} ${sources.join(' ')}`
  const used = [
    ...secretsUsed(request),
    ...databaseServers(request).map(({ secretName }) => ({
      name: secretName,
      entries: [PASSWORD_ENTRY],
      isOptional: false,
    })),
  ]
  const secrets = new Map(
    used.filter(({ isOptional }) => !isOptional).map((use) => [use.name, use]),
  )
  const commands = [...secrets.values()].map(({ name, entries }) =>
    create(
      name,
      entries.map((entry) => `--from-file=${entry}=FILE`),
    ),
  )
  const values = nameValues(request).filter(({ holdsSecret }) => holdsSecret)
  if (values.length > 0) {
    commands.push(
      create(
        VALUES_SECRET,
        values.map(({ name, path }) => `--from-file=${name}=${path}`),
      ),
    )
  }
  const variables = request.variables.filter(({ isSecret }) => isSecret)
  if (variables.length > 0) {
    commands.push(
      create(
        ENVIRONMENT_SECRET,
        variables.map(({ name }) => `--from-file=${name}=FILE`),
      ),
    )
  }
  const files = filesInSecret(request, podSettings(request, ['validator', 'participant']))
  if (files.length > 0) {
    commands.push(
      create(
        FILES_SECRET,
        files.map(({ key, path }) => `--from-file=${key}=${path}`),
      ),
    )
  }
  const overrides = 'persistence.secretOverrides.postgresPassword'
  return [
    'Made by "annals deploy kubernetes" from a checked configuration. Change that and make it again.',
    ...(commands.length === 0
      ? []
      : [
          '',
          'These secrets must be in the namespace; FILE holds the text of the entry:',
          ...commands,
        ]),
    ...(settings.get('postgres', overrides) === undefined
      ? []
      : ['', `The database server takes its password from the secret, not from ${overrides}.`]),
  ]
}
