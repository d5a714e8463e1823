import { type DatabaseServer, PASSWORD_ENTRY, postgresApps } from './database-server.ts'
import type { DeployRequest } from './request.ts'

/** Where compose puts secrets; a target may be a path below it. */
export const COMPOSE_SECRETS_DIRECTORY = '/run/secrets'
/** The variable of the reference bundle that holds the password of the database server. */
export const PASSWORD_VARIABLE = 'SPLICE_DB_PASSWORD'

/** A secret of the compose file: where its text is, and where the node looks for it. */
export type ComposeSecret = {
  readonly name: string
  readonly source: { readonly file: string } | { readonly environment: string }
  /** Undefined when only the database server reads it. */
  readonly target: string | undefined
}

/** The files that the secrets were read from, each entry or file of manifests once. */
export function composeSecrets(
  request: DeployRequest,
  servers: readonly DatabaseServer[],
): ComposeSecret[] {
  const secrets = new Map<string, ComposeSecret>()
  for (const { file, name, place } of request.settings.all()) {
    if (file !== 'secret' || place.source.kind !== 'secret') continue
    const path = place.source.name
    if (secrets.has(path)) continue
    const isEntry = path.replaceAll('\\', '/').endsWith(`/${name}`)
    secrets.set(path, {
      name: isEntry ? name.replaceAll(/[^\w.-]/g, '_') : `manifests-${secrets.size + 1}`,
      source: { file: path },
      target: isEntry ? name : `manifests-${secrets.size + 1}.yaml`,
    })
  }
  const all = [...secrets.values()]
  for (const server of servers) {
    if (passwordOf(server, all) === undefined) all.push(passwordFromVariable(request, server))
  }
  return all
}

/** The secret with the password of a server, if it has a file or a variable of its own. */
export function passwordOf(
  { secretName }: DatabaseServer,
  secrets: readonly ComposeSecret[],
): ComposeSecret | undefined {
  return secrets.find(({ name }) => name === passwordName(secretName))
}

function passwordName(secretName: string): string {
  return `${secretName}_${PASSWORD_ENTRY}`.replaceAll(/[^\w.-]/g, '_')
}

/** Without a file the password comes from the variable; the node reads it like the server does. */
function passwordFromVariable(
  request: DeployRequest,
  { secretName }: DatabaseServer,
): ComposeSecret {
  const path = `${secretName}/${PASSWORD_ENTRY}`
  const isKnown = request.settings.secret(path) !== undefined
  const isRead = postgresApps(request).some((app) => app.secretName === secretName)
  return {
    name: passwordName(secretName),
    source: { environment: PASSWORD_VARIABLE },
    target: isRead && !isKnown ? path : undefined,
  }
}
