import { PASSWORD_ENTRY, postgresApps } from './database-server.ts'
import type { DeployRequest } from './request.ts'

const LEDGER_API_SECRET = 'splice-app-validator-ledger-api-auth'
const LEDGER_API_ENTRIES = ['ledger-api-user', 'url', 'client-id', 'client-secret', 'audience']
const UI_SECRETS = ['splice-app-wallet-ui-auth', 'splice-app-cns-ui-auth']
const UI_ENTRIES = ['url', 'client-id']

/** A secret that the node reads, by name; its text is never ours to print. */
export type SecretUse = {
  readonly name: string
  readonly entries: readonly string[]
  /** The node starts without it. */
  readonly isOptional: boolean
}

/** The secrets that the configuration names, each once. */
export function secretsUsed(request: DeployRequest): SecretUse[] {
  const uses = new Map<string, SecretUse>()
  for (const use of [
    ...passwordSecrets(request),
    ...authSecrets(request),
    ...networkSecrets(request),
  ]) {
    const known = uses.get(use.name)
    uses.set(use.name, {
      name: use.name,
      entries: [...new Set([...(known?.entries ?? []), ...use.entries])],
      isOptional: use.isOptional && (known?.isOptional ?? true),
    })
  }
  return [...uses.values()]
}

function passwordSecrets(request: DeployRequest): SecretUse[] {
  const { settings } = request
  return postgresApps(request).map(({ app, secretName }) => ({
    name: secretName,
    entries: [PASSWORD_ENTRY],
    isOptional: settings.get(app, 'persistence.secretOverrides.postgresPassword') !== undefined,
  }))
}

function authSecrets({ config, settings, hasSecrets }: DeployRequest): SecretUse[] {
  const { auth } = config
  if (auth.disabled || (auth.participant === undefined && auth.validator === undefined)) return []
  const name = settings.value<string>('validator', 'auth.secretName') ?? LEDGER_API_SECRET
  const admin = reference({ settings, file: 'participant', block: 'participantAdminUserNameFrom' })
  return [
    {
      name,
      entries: LEDGER_API_ENTRIES,
      isOptional: hasSecrets && auth.ledgerApi === undefined,
    },
    ...(admin === undefined ? [] : [admin]),
    ...UI_SECRETS.map((ui) => ({ name: ui, entries: UI_ENTRIES, isOptional: true })),
  ]
}

function networkSecrets({ config, settings }: DeployRequest): SecretUse[] {
  const onboarding =
    config.network === undefined
      ? undefined
      : reference({ settings, file: 'validator', block: 'onboardingSecretFrom' })
  const dump = 'participantIdentitiesDumpImport'
  const dumpSecret =
    settings.placeOf('validator', dump) === undefined
      ? undefined
      : (settings.value<string>('validator', `${dump}.secretName`) ?? 'participant-bootstrap-dump')
  return [
    ...(onboarding === undefined ? [] : [onboarding]),
    ...(dumpSecret === undefined
      ? []
      : [{ name: dumpSecret, entries: ['content'], isOptional: false }]),
  ]
}

function reference({
  settings,
  file,
  block,
}: {
  settings: DeployRequest['settings']
  file: 'validator' | 'participant'
  block: string
}): SecretUse | undefined {
  const value = <T>(name: string) => settings.value<T>(file, `${block}.secretKeyRef.${name}`)
  const name = value<string>('name')
  const key = value<string>('key')
  if (name === undefined || key === undefined) return undefined
  return { name, entries: [key], isOptional: value<boolean>('optional') ?? false }
}
