import { PARTICIPANT_APP, VALIDATOR_APP } from './canton-keys.ts'
import {
  APPS,
  type App,
  isMalformed,
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

export function checkDatabases(context: RuleContext): void {
  const { settings, sources } = context
  const stated = settings.get('validator', 'migration.id') !== undefined
  const migration = String(settings.value<bigint>('validator', 'migration.id') ?? 0n)
  const migrationKnown = !isMalformed(context, 'validator', 'migration.id')
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
      message: `${nameOf(database)} is ${name}, but the migration id is ${migration}${stated ? '' : ' (neither migration.id nor MIGRATION_ID is given)'}, and the participant's database is named participant_<migration id>. With another name the node would start on an empty or a foreign database.`,
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
  const { settings, sources } = context
  const uses = APPS.filter((app) => usesPostgres(context, app))
  if (uses.length === 1 && !sources.broken.has(otherApp(uses[0] as App))) {
    const app = uses[0] as App
    tell(context, 'warning', {
      rule: 'mixed-databases',
      about: subjectAt(context, app, 'persistence'),
      message: `Only the ${app} values have a persistence block: the ${app} uses PostgreSQL, and the other app SQLite files in annals.dataDir.`,
    })
  }
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
  const secretName = (file: App | 'postgres') => settings.get(file, 'persistence.secretName')
  const first = secretName('participant') ?? secretName('validator')
  for (const setting of [secretName('validator'), secretName('postgres')]) {
    if (first === undefined || setting === undefined || setting.value === first.value) continue
    const [a, b] = [first, setting].map(
      ({ value }) => sources.secrets?.get(`${value}/postgresPassword`)?.text,
    )
    if (a !== undefined && a === b) continue
    tell(context, 'error', {
      rule: 'shared-password',
      about: subjectOf(setting),
      message: `persistence.secretName is ${setting.value} here and ${first.value} in the participant values, but the database and all apps share one password in one secret.`,
      hint: `secretName: ${first.value}`,
    })
  }
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

function checkPassword(context: RuleContext, app: App): void {
  const { settings, sources } = context
  if (settings.get(app, 'persistence.secretOverrides.postgresPassword') !== undefined) return
  const secret = settings.value<string>(app, 'persistence.secretName') ?? 'postgres-secrets'
  if (sources.secrets?.has(`${secret}/postgresPassword`) === true) return
  tell(context, sources.secrets === undefined ? 'notice' : 'error', {
    rule: 'database-password',
    about: {
      ...subjectAt(context, app, 'persistence.secretName'),
      key: `${secret}/postgresPassword`,
    },
    message: `The database password of the ${app} is not known: the entry ${secret}/postgresPassword is not among the secrets.`,
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
