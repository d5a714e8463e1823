import {
  APPS,
  type App,
  isMalformed,
  isReadable,
  isWritten,
  nameOf,
  otherApp,
  placeInValues,
  type RuleContext,
  subjectAt,
  subjectOf,
  tell,
} from './rule-context.ts'
import {
  LEDGER_API_SECRET,
  NAME_SERVICE_UI_SECRET,
  SECRET_ENTRIES,
  WALLET_UI_SECRET,
} from './variables.ts'

export function checkAuth(context: RuleContext): void {
  const { settings, sources } = context
  const disabled = APPS.filter((app) => settings.value(app, 'disableAuth') === true)
  const [only] = disabled
  if (only !== undefined && disabled.length === 1 && !sources.broken.has(otherApp(only))) {
    if (!isMalformed(context, otherApp(only), 'disableAuth')) {
      tell(context, 'error', {
        rule: 'disable-auth',
        about: subjectAt(context, only, 'disableAuth'),
        message: `disableAuth is true in the ${only} values, but not in the ${otherApp(only)} values. It must stand in both, or the two apps refuse each other.`,
        hint: `Write disableAuth: true in the ${otherApp(only)} values too, or remove it here.`,
      })
    }
  }
  if (disabled.length > 0) {
    const about = subjectAt(context, disabled[0] as App, 'disableAuth')
    const message =
      'disableAuth opens the APIs to everyone who can reach them. Do not use it in production.'
    tell(context, 'warning', { rule: 'open-api', about, message })
    return
  }
  for (const app of APPS) checkAuthBlock(context, app)
  checkProvider(context)
}

function checkAuthBlock(context: RuleContext, app: App): void {
  const audience = app === 'validator' ? 'audience' : 'targetAudience'
  if (!isWritten(context, app, 'auth')) {
    if (!context.joining || isMalformed(context, app, 'disableAuth')) return
    if (isReadable(context, app)) {
      tell(context, 'error', {
        rule: 'required',
        about: subjectAt(context, app, 'auth'),
        message: `auth is missing in the ${app} values, and disableAuth is not true: no token could be checked.`,
        hint: `auth: { jwksUrl: "https://acme.eu.auth0.example/.well-known/jwks.json", ${audience}: "https://${app}.acme.example" }`,
      })
    }
    return
  }
  if (isMalformed(context, app, 'auth')) return
  // The variables of compose name audiences also where nothing is checked.
  const isInValues = placeInValues(context, app, 'auth') !== undefined
  if (!isInValues && !isWritten(context, app, 'auth.jwksUrl')) {
    tell(context, 'warning', {
      rule: 'no-key-set',
      about: subjectAt(context, app, `auth.${audience}`),
      message: `auth.${audience} of the ${app} has no effect, because AUTH_JWKS_URL (auth.jwksUrl) is not given: the node takes the tokens of its own development key.`,
    })
    return
  }
  for (const name of ['jwksUrl', audience]) {
    if (isWritten(context, app, `auth.${name}`)) continue
    tell(context, 'error', {
      rule: 'required',
      about: subjectAt(context, app, `auth.${name}`),
      message: `auth.${name} is missing in the ${app} values, and the rest of auth is given.`,
    })
  }
}

/** Tokens of the validator for the participant: same audience, same provider. */
function checkProvider(context: RuleContext): void {
  const { settings } = context
  const target = settings.get('participant', 'auth.targetAudience')
  const audience =
    settings.get('validator', 'auth.secretOverrides.audience') ??
    settings.secret(`${LEDGER_API_SECRET}/audience`)
  if (target !== undefined && audience !== undefined && target.value !== audience.value) {
    tell(context, 'error', {
      rule: 'audience',
      about: subjectOf(audience),
      message: `The audience of the ledger API secret differs from auth.targetAudience of the participant (${target.value}), so every token of the validator would be refused.`,
    })
  }
  const urls = [
    settings.get('participant', 'auth.jwksUrl'),
    settings.get('validator', 'auth.jwksUrl'),
    settings.secret(`${LEDGER_API_SECRET}/url`),
  ]
  const [first, ...rest] = urls.filter((setting) => setting !== undefined)
  for (const setting of rest) {
    if (first === undefined || hostOf(setting.value) === hostOf(first.value)) continue
    tell(context, 'warning', {
      rule: 'provider',
      about: subjectOf(setting),
      message: `${nameOf(setting)} points at another host than ${first.path} of the participant; both apps usually trust one provider.`,
    })
  }
  const discovery = settings.secret(`${LEDGER_API_SECRET}/url`)
  if (
    discovery !== undefined &&
    !/\/\.well-known\/openid-configuration$/.test(String(discovery.value))
  ) {
    tell(context, 'warning', {
      rule: 'provider',
      about: subjectOf(discovery),
      message: `${LEDGER_API_SECRET}/url does not end in /.well-known/openid-configuration, where providers have their discovery document.`,
    })
  }
}

function hostOf(url: unknown): string {
  return new URL(String(url)).host
}

export function checkSecrets(context: RuleContext): void {
  const { settings, sources } = context
  if (sources.secrets === undefined) return
  const names = new Set([...sources.secrets.keys()].map((path) => path.split('/')[0]))
  const authDisabled = settings.value('validator', 'disableAuth') === true
  const fixedToken = settings.secret(`${LEDGER_API_SECRET}/token`) !== undefined
  for (const secret of [LEDGER_API_SECRET, WALLET_UI_SECRET, NAME_SERVICE_UI_SECRET]) {
    if (authDisabled || (!names.has(secret) && !context.joining)) continue
    if (!names.has(secret)) {
      tell(context, 'notice', {
        rule: 'secret-missing',
        about: { key: secret, path: secret },
        message: `The secret ${secret} is not among the secrets; what needs it stays off.`,
      })
      continue
    }
    for (const row of SECRET_ENTRIES) {
      const path = `${row.secret}/${row.entry}`
      if (row.secret !== secret || row.optional === true || sources.secrets.has(path)) continue
      if (settings.secret(path) !== undefined || (fixedToken && row.entry !== 'ledger-api-user'))
        continue
      tell(context, 'error', {
        rule: 'secret-missing',
        about: { key: path, path },
        message: `The entry ${path} is missing. ${row.doc}`,
      })
    }
  }
  for (const [file, ref] of [
    ['validator', 'onboardingSecretFrom.secretKeyRef'],
    ['participant', 'participantAdminUserNameFrom.secretKeyRef'],
  ] as const) {
    checkReference(context, file, ref)
  }
  for (const app of APPS) {
    const items = settings.value<unknown[]>(app, 'additionalEnvVars') ?? []
    for (const index of items.keys())
      checkReference(context, app, `additionalEnvVars[${index}].valueFrom.secretKeyRef`)
  }
}

function checkReference(context: RuleContext, file: App, ref: string): void {
  const { settings, sources } = context
  const name = settings.value<string>(file, `${ref}.name`)
  const key = settings.value<string>(file, `${ref}.key`)
  if (name === undefined || key === undefined || settings.value(file, `${ref}.optional`) === true)
    return
  if (sources.secrets?.has(`${name}/${key}`) !== false) return
  if (ref.startsWith('onboarding') && settings.secret('onboarding/secret') !== undefined) return
  if (ref.startsWith('onboarding') && context.onboarded !== 'no') return
  tell(context, ref.startsWith('participantAdmin') ? 'warning' : 'error', {
    rule: 'secret-missing',
    about: subjectAt(context, file, `${ref}.name`),
    message: `The entry ${name}/${key} is not among the secrets.`,
  })
}
