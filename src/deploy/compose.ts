import {
  COMPOSE_SECRETS_DIRECTORY,
  type ComposeSecret,
  composeSecrets,
  PASSWORD_VARIABLE,
  passwordOf,
} from './compose-secrets.ts'
import {
  CONTAINER_USER,
  DATA_DIRECTORY,
  keepsData,
  nameValues,
  pathInContainer,
  portsOf,
  STOP_SECONDS,
  startArguments,
  VALUES_DIRECTORY,
} from './container.ts'
import {
  type DatabaseServer,
  databaseServers,
  nodeVolume,
  POSTGRES_DIRECTORY,
  POSTGRES_IMAGE,
  POSTGRES_PORT,
} from './database-server.ts'
import { printDocuments } from './print.ts'
import type { DeployRequest } from './request.ts'

/** Loopback unless the operator says otherwise, by the variable of the reference bundle. */
const HOST_ADDRESS = `\${HOST_BIND_IP:-127.0.0.1}`
const NODE = 'annals'

/** A compose file for a node, and for its database server where the values describe one. */
export function composeYaml(request: DeployRequest): string {
  return printDocuments(preamble(request), [composeFile(request)])
}

export function composeFile(request: DeployRequest): object {
  const servers = databaseServers(request)
  const secrets = composeSecrets(request, servers)
  const ports = portsOf(request).map(({ port }) => `${HOST_ADDRESS}:${port}:${port}`)
  const services = {
    [NODE]: { ...(literal(nodeService(request, servers, secrets)) as object), ports },
    ...(literal(
      Object.fromEntries(servers.map((server) => [server.host, databaseService(server, secrets)])),
    ) as object),
  }
  const volumeNames = [
    ...(keepsData(request) ? [nodeVolume(request).name] : []),
    ...servers.map(databaseVolume),
  ]
  return {
    name: NODE,
    services,
    ...(request.values.length === 0 ? {} : { configs: literal(configs(request)) }),
    ...(secrets.length === 0
      ? {}
      : {
          secrets: literal(Object.fromEntries(secrets.map(({ name, source }) => [name, source]))),
        }),
    ...(volumeNames.length === 0
      ? {}
      : { volumes: Object.fromEntries(volumeNames.map((name) => [name, {}])) }),
  }
}

function preamble(request: DeployRequest): string[] {
  const secrets = composeSecrets(request, databaseServers(request))
  const needsVariable = secrets.some(({ source }) => 'environment' in source)
  return [
    'Made by "annals deploy compose" from a checked configuration. Change that and make it again.',
    'Paths count from the directory of this file. The user 1001 of the container must be able to read them.',
    `HOST_BIND_IP=0.0.0.0 opens the ports to other machines; they bind to loopback otherwise.`,
    ...(needsVariable
      ? [`${PASSWORD_VARIABLE} must hold the password of the database server.`]
      : []),
    ...(request.settings.get('postgres', 'persistence.secretOverrides.postgresPassword') ===
    undefined
      ? []
      : ['The server does not take it from persistence.secretOverrides of the database values.']),
  ]
}

function nodeService(
  request: DeployRequest,
  servers: readonly DatabaseServer[],
  secrets: readonly ComposeSecret[],
): object {
  const named = nameValues(request)
  const own = secrets.flatMap(({ name, target }) =>
    target === undefined ? [] : [{ source: name, target }],
  )
  const environment = request.variables.filter(({ from }) => from === 'environment')
  return {
    image: request.image,
    command: startArguments(request, own.length === 0 ? undefined : COMPOSE_SECRETS_DIRECTORY),
    restart: 'unless-stopped',
    stop_grace_period: `${STOP_SECONDS}s`,
    ...(request.envFile === undefined ? {} : { env_file: [request.envFile] }),
    ...(environment.length === 0
      ? {}
      : // A name without a value takes the text from the environment of compose.
        { environment: environment.map(({ name }) => name) }),
    ...(named.length === 0
      ? {}
      : {
          configs: named.map(({ name }) => ({
            source: name,
            target: `${VALUES_DIRECTORY}/${name}`,
          })),
        }),
    ...(own.length === 0 ? {} : { secrets: own }),
    ...mounts(request),
    healthcheck: healthCheck(request),
    ...(servers.length === 0
      ? {}
      : {
          depends_on: Object.fromEntries(
            servers.map(({ host }) => [host, { condition: 'service_healthy' }]),
          ),
        }),
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  }
}

function mounts(request: DeployRequest): object {
  const keeps = keepsData(request)
  const files = request.files.map((file) => ({
    type: 'bind',
    source: file.path,
    target: pathInContainer(file),
    read_only: true,
  }))
  const volumes = [
    ...(keeps
      ? [{ type: 'volume', source: nodeVolume(request).name, target: DATA_DIRECTORY }]
      : []),
    ...files,
  ]
  const scratch = `${DATA_DIRECTORY}:mode=0700,uid=${CONTAINER_USER},gid=${CONTAINER_USER}`
  return {
    ...(volumes.length === 0 ? {} : { volumes }),
    tmpfs: ['/tmp', ...(keeps ? [] : [scratch])],
  }
}

/** The probes of a cluster and this check stand and fall with the same key. */
function healthCheck({ config }: DeployRequest): object {
  const { healthProbes, livenessDelaySeconds } = config.deployment
  if (!healthProbes) return { disable: true }
  const url = `http://127.0.0.1:${config.listen.ports.validator}/readyz`
  const start = Math.max(livenessDelaySeconds.validator, livenessDelaySeconds.participant)
  return {
    test: ['CMD', 'node', '-e', `fetch('${url}').then((r) => { process.exitCode = r.ok ? 0 : 1 })`],
    interval: '10s',
    timeout: '10s',
    retries: 5,
    start_period: `${start}s`,
    start_interval: '1s',
  }
}

function databaseService(server: DatabaseServer, secrets: readonly ComposeSecret[]): object {
  const password = passwordOf(server, secrets)?.name
  return {
    image: POSTGRES_IMAGE,
    command: [
      ...server.serverArguments,
      ...(server.port === POSTGRES_PORT ? [] : ['-p', String(server.port)]),
    ],
    restart: 'unless-stopped',
    stop_grace_period: '60s',
    environment: {
      POSTGRES_USER: server.user,
      POSTGRES_INITDB_ARGS: '--data-checksums',
      POSTGRES_PASSWORD_FILE: `${COMPOSE_SECRETS_DIRECTORY}/${password}`,
    },
    secrets: [password],
    volumes: [{ type: 'volume', source: databaseVolume(server), target: POSTGRES_DIRECTORY }],
    healthcheck: {
      test: ['CMD', 'pg_isready', '-U', server.user, '-d', 'postgres', '-p', String(server.port)],
      interval: '5s',
      timeout: '5s',
      retries: 12,
    },
  }
}

function databaseVolume({ host, volume }: DatabaseServer): string {
  return `${volume.name}-${host}`
}

function configs(request: DeployRequest): object {
  return Object.fromEntries(nameValues(request).map(({ name, path }) => [name, { file: path }]))
}

/** Compose replaces variables in every text; what we write is meant as it stands. */
function literal(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('$', '$$$$')
  if (Array.isArray(value)) return value.map(literal)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, literal(member)]))
}
