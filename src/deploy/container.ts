import { basename, isAbsolute, posix } from 'node:path'
import { DeployError, type DeployRequest, type GivenFile, type GivenValues } from './request.ts'

/** Of the node's image; deploy/Dockerfile makes the same user. */
export const CONTAINER_USER = 1001
export const DATA_DIRECTORY = '/var/lib/annals'
export const VALUES_DIRECTORY = '/etc/annals/values'
/** Loopback would be the container alone. */
const BIND_ADDRESS = '0.0.0.0'
/** The node answers what is under way for ten seconds before it closes its databases. */
export const STOP_SECONDS = 30

export type Port = { readonly name: 'ledger' | 'scan' | 'validator' | 'metrics'; port: number }

export function portsOf({ config }: DeployRequest): Port[] {
  const names = ['ledger', 'scan', 'validator', 'metrics'] as const
  const ports = names.map((name) => ({ name, port: config.listen.ports[name] }))
  const free = ports.find(({ port }) => port === 0)
  if (free !== undefined) {
    throw new DeployError(
      `annals.ports.${free.name} is 0, which picks a free port, and nobody could find it in a container. Name a port.`,
    )
  }
  return ports
}

/** A values file under the name that it has in the container. */
export type NamedValues = GivenValues & { readonly name: string }

/** Files keep their names where these differ, so that messages of the node point at them. */
export function nameValues({ values }: DeployRequest): NamedValues[] {
  const names = values.map(({ path }) => basename(path).replaceAll(/[^\w.-]/g, '_'))
  return values.map((given, index) => {
    const name = names[index] as string
    const isUnique = names.indexOf(name) === names.lastIndexOf(name) && !name.startsWith('..')
    return { ...given, name: isUnique ? name : `${given.app}-${index + 1}.yaml` }
  })
}

/** What the image is started with; its entry point is the program. */
export function startArguments(
  request: DeployRequest,
  secretsDirectory: string | undefined,
): string[] {
  const named = nameValues(request)
  const beside = request.files.find(({ written }) => !isAbsolute(written))
  if (named.length === 0 && beside !== undefined) {
    throw new DeployError(
      `The configuration names the file ${beside.written}, and without values files there is nothing beside which it could lie. Write an absolute path.`,
    )
  }
  const filesOf = (app: GivenValues['app']) =>
    named.filter((given) => given.app === app).map(({ name }) => name)
  const flags = (flag: string, names: string[]) =>
    names.flatMap((name) => [flag, posix.join(VALUES_DIRECTORY, name)])
  return [
    'start',
    '--empty',
    ...['--bind', BIND_ADDRESS, '--data', DATA_DIRECTORY],
    ...flags('-f', filesOf('validator')),
    ...flags('-p', filesOf('participant')),
    ...(secretsDirectory === undefined ? [] : ['--secrets', secretsDirectory]),
    ...(request.isLenient ? ['--lenient'] : []),
  ]
}

/** Paths that are not absolute are looked for beside the values. */
export function pathInContainer({ written }: GivenFile): string {
  return isAbsolute(written) ? posix.normalize(written) : posix.join(VALUES_DIRECTORY, written)
}

/** Whether anything must outlive the container: SQLite files, or the key of development tokens. */
export function keepsData({ config: { databases, auth } }: DeployRequest): boolean {
  const isSqlite = [databases.app, databases.participant].some(({ engine }) => engine === 'sqlite')
  return isSqlite || (!auth.disabled && auth.participant === undefined)
}
