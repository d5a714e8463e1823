import { PARTICIPANT_APP, VALIDATOR_APP } from './canton-keys.ts'
import { FILE_TITLES } from './keys.ts'
import {
  APPS,
  type App,
  isMalformed,
  isReadable,
  isWritten,
  nameOf,
  otherApp,
  type RuleContext,
  subjectAt,
  subjectOf,
  tell,
  usesPostgres,
} from './rule-context.ts'

const PARTICIPANT_SCHEMA = 'participant'
const DEFAULT_SECRET = 'postgres-secrets'

export function checkDatabases(context: RuleContext): void {
  const { settings, sources } = context
  const stated = settings.get('validator', 'migration.id') !== undefined
  const migration = String(settings.value<bigint>('validator', 'migration.id') ?? 0n)
  // Where the id must be given and is not, that is told, and a name cannot be judged.
  const migrationKnown =
    (stated || !context.joining) && !isMalformed(context, 'validator', 'migration.id')
  for (const app of APPS) {
    const database = settings.get(app, 'persistence.databaseName')
    if (database === undefined || !migrationKnown || sources.broken.has('validator')) continue
    const name = String(database.value)
    const named = /^participant([_-])(\d+)$/.exec(name)
    // Compose writes a dash; the databases of the chart are made without quotes and cannot have one.
    const dashFits = named?.[1] === '_' || database.place.source.variable !== undefined
    const fits = named !== null && BigInt(named[2] as string) === BigInt(migration) && dashFits
    if (fits || (app === 'validator' && named === null)) continue
    tell(context, 'error', {
      rule: 'database-name',
      about: subjectOf(database),
      message: `${nameOf(database)} is ${name}, but the migration id is ${migration}${stated ? '' : ', as neither migration.id nor MIGRATION_ID is given'}, and the participant's database is named participant_<migration id>. With another name the node would start on an empty or a foreign database.`,
      hint: `databaseName: participant_${migration}`,
    })
  }
  const schema = settings.get('participant', 'persistence.schema')
  if (schema !== undefined && schema.value !== PARTICIPANT_SCHEMA) {
    tell(context, 'error', {
      rule: 'schema',
      about: subjectOf(schema),
      message: `${nameOf(schema)} of the participant must be ${PARTICIPANT_SCHEMA}.`,
      hint: `schema: ${PARTICIPANT_SCHEMA}`,
    })
  }
  checkSharedServer(context)
  for (const app of APPS)
    checkDatabaseTls(context, app === 'validator' ? VALIDATOR_APP : PARTICIPANT_APP)
}

function checkSharedServer(context: RuleContext): void {
  const { settings } = context
  const uses = APPS.filter((app) => usesPostgres(context, app))
  if (uses.length === 1) checkMixed(context, uses[0] as App)
  const databases = settings.get('validator', 'persistence.databaseName')
  if (
    databases !== undefined &&
    databases.value === settings.value('participant', 'persistence.databaseName')
  ) {
    tell(context, 'warning', {
      rule: 'shared-database',
      about: subjectOf(databases),
      message:
        'The apps share the database of the participant, which is new for each migration; their history would be left behind. Their tables go to the schema validator.',
      hint: 'databaseName: cantonnet_validator',
    })
  }
  checkSharedSecret(context, uses)
  for (const app of uses) {
    const user = settings.get(app, 'persistence.user')
    if (user !== undefined && user.value !== 'cnadmin') {
      tell(context, 'notice', {
        rule: 'database-user',
        about: subjectOf(user),
        message: `${nameOf(user)} is not cnadmin, the one admin user that the reference deployment creates.`,
      })
    }
    checkPassword(context, app)
  }
}

function checkMixed(context: RuleContext, app: App): void {
  const other = otherApp(app)
  if (context.sources.broken.has(other)) return
  // The validator's block has defaults in the reference; the participant's names its host and schema.
  if (context.joining && other === 'participant' && isReadable(context, other)) {
    tell(context, 'error', {
      rule: 'required',
      about: subjectAt(context, other, 'persistence'),
      message:
        'persistence is missing in the participant values, and the validator values have it: the apps of a node keep their data in one place.',
      hint: 'persistence: { host: postgres, schema: participant }',
    })
    return
  }
  tell(context, 'warning', {
    rule: 'mixed-databases',
    about: subjectAt(context, app, 'persistence'),
    message: `Only the ${app} values have a persistence block: the ${app} uses PostgreSQL, and the other app SQLite files in annals.dataDir.`,
  })
}

/** An app that names no secret reads the default one; the server reads the secret of the apps. */
function checkSharedSecret(context: RuleContext, uses: readonly App[]): void {
  const { settings, sources } = context
  const named = (file: App | 'postgres') => settings.value<string>(file, 'persistence.secretName')
  const apps = uses.filter(
    (app) => settings.get(app, 'persistence.secretOverrides.postgresPassword') === undefined,
  )
  const readers = [...apps.toReversed(), ...(named('postgres') === undefined ? [] : ['postgres'])]
  const [first, ...rest] = (readers as (App | 'postgres')[]).map((file) => ({
    file,
    secret: named(file) ?? DEFAULT_SECRET,
  }))
  for (const { file, secret } of rest) {
    if (first === undefined || secret === first.secret) continue
    const [a, b] = [first.secret, secret].map(
      (name) => sources.secrets?.get(`${name}/postgresPassword`)?.text,
    )
    if (a !== undefined && a === b) continue
    // What is written can be pointed at; a default cannot.
    const about = named(file) === undefined ? first.file : file
    const there = about === file ? first : { file, secret }
    tell(context, 'error', {
      rule: 'shared-password',
      about: subjectAt(context, about, 'persistence.secretName'),
      message: `persistence.secretName is ${about === file ? secret : first.secret} here and ${there.secret}${named(there.file) === undefined ? ' by default' : ''} in the ${FILE_TITLES[there.file]}, but the database and all apps share one password in one secret.`,
      hint: `secretName: ${there.secret}`,
    })
  }
}

function checkPassword(context: RuleContext, app: App): void {
  const { settings, sources } = context
  if (settings.get(app, 'persistence.secretOverrides.postgresPassword') !== undefined) return
  const secret = settings.value<string>(app, 'persistence.secretName') ?? DEFAULT_SECRET
  const password = sources.secrets?.get(`${secret}/postgresPassword`)?.text
  if (password !== undefined && password !== '') return
  tell(context, sources.secrets === undefined ? 'notice' : 'error', {
    rule: 'database-password',
    about: {
      ...subjectAt(context, app, 'persistence.secretName'),
      key: `${secret}/postgresPassword`,
    },
    message: `The database password of the ${app} is not known: the entry ${secret}/postgresPassword is ${password === '' ? 'empty' : 'not among the secrets'}.`,
    hint: 'Give the secrets with --secrets, or set SPLICE_DB_PASSWORD.',
  })
}

function checkDatabaseTls(context: RuleContext, app: string): void {
  const at = (name: string) => `${app}.storage.config.properties.${name}`
  const get = (name: string) => context.settings.get('canton', at(name))
  for (const [given, missing] of [
    ['sslcert', 'sslkey'],
    ['sslkey', 'sslcert'],
  ] as const) {
    const setting = get(given)
    if (setting === undefined || isWritten(context, 'canton', at(missing))) continue
    tell(context, 'error', {
      rule: 'database-tls',
      about: { ...subjectOf(setting), found: undefined, key: at(missing), path: at(missing) },
      message: `${missing} is missing: mutual TLS with the database needs a client certificate and its key, and only ${given} is given.`,
    })
  }
  const off =
    get('sslmode')?.value === 'disable' ||
    (get('sslmode') === undefined && get('ssl')?.value !== true)
  const first = ['sslrootcert', 'sslcert', 'sslkey']
    .map(get)
    .find((setting) => setting !== undefined)
  if (off && first !== undefined) {
    tell(context, 'warning', {
      rule: 'database-tls',
      about: subjectOf(first),
      message: `${first.path} has no effect, because neither ssl nor sslmode switches TLS on.`,
    })
  }
}
