import { VALIDATOR_APP } from './canton-keys.ts'
import {
  isMalformed,
  isReadable,
  isWritten,
  nameOf,
  placeInValues,
  type RuleContext,
  subjectAt,
  subjectOf,
  tell,
} from './rule-context.ts'
import type { Setting } from './settings.ts'

/** The two forms of one parameter: the variable, and the key of the validator values. */
const PARAMETERS = [
  { variable: 'MIGRATION_ID', key: 'migration.id' },
  { variable: 'SPONSOR_SV_URL', key: 'svSponsorAddress' },
  { variable: 'TRUSTED_SCAN_URL', key: 'scanAddress' },
] as const

type ScanMode = 'bft' | 'bft-custom' | 'trust-single'

const SINGLE_TRUST =
  'The node depends entirely on that one super validator: if it is offline or compromised, the node cannot transact or is told lies.'

/** Any of these makes the node one that joins a network. A migration id in the values alone does not: a network of one migrates too. */
export function isJoining(context: Pick<RuleContext, 'settings' | 'problems'>): boolean {
  const migration = context.settings.get('validator', 'migration.id')
  return (
    isWritten(context, 'validator', 'svSponsorAddress') ||
    hasScan(context) ||
    hasOnboardingSecret(context) ||
    migration?.name === 'MIGRATION_ID' ||
    context.problems.some(({ key }) => key === 'MIGRATION_ID')
  )
}

function hasScan(context: Pick<RuleContext, 'settings' | 'problems'>): boolean {
  return (
    isWritten(context, 'validator', 'scanAddress') || isWritten(context, 'validator', 'scanClient')
  )
}

function hasOnboardingSecret({ settings }: Pick<RuleContext, 'settings'>): boolean {
  return (
    settings.secret('onboarding/secret') !== undefined ||
    settings.placeOf('validator', 'onboardingSecretFrom') !== undefined ||
    settings.get('canton', `${VALIDATOR_APP}.onboarding.secret`) !== undefined
  )
}

export function checkNetworkParameters(context: RuleContext): void {
  const { settings, sources } = context
  for (const { lost, won } of settings.overridden()) {
    if (won.path === 'migration.id' && won.file === 'validator') {
      tell(context, 'error', {
        rule: 'migration-id',
        about: subjectOf(lost),
        message: `${nameOf(lost)} is ${lost.value}, but ${won.name} is ${won.value}: both name the current migration and must agree.`,
      })
    }
  }
  if (!context.joining || sources.broken.has('validator')) return
  const inValues = isReadable(context, 'validator')
  for (const { variable, key } of PARAMETERS) {
    const written = key === 'scanAddress' ? hasScan(context) : isWritten(context, 'validator', key)
    if (!written) missingParameter(context, variable, key, inValues)
  }
  const devNet = settings.secret('onboarding/devnet') !== undefined
  if (hasOnboardingSecret(context) || devNet || context.onboarded === 'yes') return
  tell(context, context.onboarded === 'unknown' ? 'notice' : 'error', {
    rule: 'network-parameters',
    about: { key: 'ONBOARDING_SECRET', path: 'onboardingSecretFrom' },
    message:
      'ONBOARDING_SECRET (onboardingSecretFrom in the validator values) is missing. It is needed until the node is onboarded.',
    hint: 'Ask the sponsor for a secret, which lives 48 hours; set ONBOARDING_SECRET to nothing once the node is onboarded.',
  })
}

function missingParameter(
  context: RuleContext,
  variable: string,
  key: string,
  inValues: boolean,
): void {
  const about = inValues
    ? { ...subjectAt(context, 'validator', key), key }
    : { key: variable, path: variable, place: undefined }
  tell(context, 'error', {
    rule: 'network-parameters',
    about,
    message: `${variable} (${key} in the validator values) is missing. The network parameters belong together: as soon as one is given, the others are needed.`,
    hint: `Set ${variable} in the environment, or ${key} in the validator values.`,
  })
}

export function checkIdentity(context: RuleContext): void {
  const { settings } = context
  const svValidator = settings.value('validator', 'svValidator') === true
  const hint = settings.get('validator', 'validatorPartyHint')
  if (svValidator) checkSvValidator(context, hint)
  if (!context.joining) return
  if (isReadable(context, 'validator')) {
    for (const key of svValidator ? ['nodeIdentifier'] : ['validatorPartyHint', 'nodeIdentifier']) {
      if (isWritten(context, 'validator', key)) continue
      tell(context, 'error', {
        rule: 'required',
        about: subjectAt(context, 'validator', key),
        message: `${key} is missing. A node that joins a network needs it, and it cannot change afterwards.`,
        hint: `${key}: "acme-validator-1"`,
      })
    }
  } else if (hint === undefined && !context.sources.given.has('validator')) {
    tell(context, 'notice', {
      rule: 'party-hint',
      about: { key: 'PARTY_HINT', path: 'validatorPartyHint' },
      message:
        'PARTY_HINT (validatorPartyHint) is not given; the node calls itself annals-validator-1.',
    })
  }
  const identifier = settings.get('validator', 'nodeIdentifier')
  if (hint !== undefined && identifier !== undefined && hint.value !== identifier.value) {
    tell(context, 'notice', {
      rule: 'node-identifier',
      about: subjectOf(identifier),
      message: `nodeIdentifier differs from validatorPartyHint; usually the two are equal.`,
    })
  }
  checkSwappedUrls(context)
}

function checkSvValidator(context: RuleContext, hint: Setting | undefined): void {
  const { settings } = context
  if (hint !== undefined) {
    tell(context, 'error', {
      rule: 'party-hint',
      about: subjectOf(hint),
      message:
        'validatorPartyHint must be absent when svValidator is true: the super validator gives the party.',
    })
  }
  const disabled = settings.get(
    'canton',
    `${VALIDATOR_APP}.disable-sv-validator-bft-sequencer-connection`,
  )
  const url =
    settings.get('validator', 'decentralizedSynchronizerUrl') ??
    settings.get('validator', 'synchronizer.url')
  if ((disabled?.value === true) !== (url !== undefined)) {
    tell(context, 'error', {
      rule: 'sv-sequencer',
      about: subjectOf((url ?? disabled) as Setting),
      message:
        'For the validator of a super validator, a sequencer URL and disable-sv-validator-bft-sequencer-connection need each other.',
    })
  }
}

/** The two URLs are often taken for each other; by custom their hosts say which is which. */
function checkSwappedUrls(context: RuleContext): void {
  for (const [path, wrong, right] of [
    ['svSponsorAddress', 'scan.', 'sponsoring super validator'],
    ['scanAddress', 'sv.', 'scan'],
  ] as const) {
    const setting = context.settings.get('validator', path)
    if (setting !== undefined && new URL(String(setting.value)).hostname.startsWith(wrong)) {
      tell(context, 'warning', {
        rule: 'swapped-url',
        about: subjectOf(setting),
        message: `${nameOf(setting)} looks like the URL of another service: its host begins with "${wrong}", and the URL of the ${right} is needed.`,
      })
    }
  }
}

/** A node copies the network that it joins; another one it may only copy when it joins none. */
function checkMirrorFrom(context: RuleContext): void {
  const from = context.settings.get('validator', 'annals.mirror.from')
  if (from === undefined) return
  if (isEmptyList(context, from)) {
    tell(context, 'error', {
      rule: 'mirror-from',
      about: subjectOf(from),
      message: 'annals.mirror.from is empty, so there is no scan to copy from.',
      hint: 'from: ["https://scan.sv-1.testnet.example.net"]',
    })
  } else if (context.joining) {
    tell(context, 'error', {
      rule: 'mirror-from',
      about: subjectOf(from),
      message: 'annals.mirror.from is for a node that joins no network; this one joins one.',
      hint: 'Remove annals.mirror.from: the scans of the network are found from scanAddress.',
    })
  }
}

export function checkScanConnection(context: RuleContext): void {
  const { settings } = context
  checkMirrorFrom(context)
  const single = settings.get('validator', 'nonSvValidatorTrustSingleScan')
  if (settings.placeOf('validator', 'scanClient') !== undefined) {
    // A setting in HOCON wins over both forms.
    const isInValues = placeInValues(context, 'validator', 'scanClient') !== undefined
    for (const key of ['scanAddress', 'nonSvValidatorTrustSingleScan']) {
      const place = placeInValues(context, 'validator', key)
      if (place === undefined || !isInValues) continue
      tell(context, 'error', {
        rule: 'scan-client',
        about: { key, path: key, place },
        message: `${key} and scanClient exclude each other.`,
        hint: `Remove ${key}, or the block scanClient.`,
      })
    }
    checkScanClient(context)
    return
  }
  if (single?.value !== true) return
  tell(context, 'warning', {
    rule: 'single-trust',
    about: subjectOf(single),
    message: `nonSvValidatorTrustSingleScan trusts one scan. ${SINGLE_TRUST}`,
  })
}

function checkScanClient(context: RuleContext): void {
  if (isMalformed(context, 'validator', 'scanClient.scanType')) return
  const type = scanMode(context)
  const seeds = context.settings.get('validator', 'scanClient.seedUrls')
  if (seeds !== undefined && isEmptyList(context, seeds)) {
    tell(context, 'error', {
      rule: 'scan-client',
      about: subjectOf(seeds),
      message: 'scanClient.seedUrls is empty, so no scan could ever be found.',
      hint: 'seedUrls: ["https://scan.sv-1.testnet.example.net"]',
    })
  }
  if (type === 'trust-single') {
    need(context, 'scanClient', 'scanAddress', 'trust-single')
    const about = subjectAt(context, 'validator', 'scanClient.scanType')
    tell(context, 'warning', {
      rule: 'single-trust',
      about,
      message: `scanClient trusts one scan. ${SINGLE_TRUST}`,
    })
    return
  }
  need(context, 'scanClient', 'seedUrls', type)
  if (type === 'bft-custom') checkChosenSet(context, 'scanClient')
}

/** The block alone means many scans, as in the charts. */
export function scanMode({ settings }: Pick<RuleContext, 'settings'>): ScanMode {
  return settings.value<ScanMode>('validator', 'scanClient.scanType') ?? 'bft'
}

/** Empty as written: a list whose items were all refused has been told of. */
function isEmptyList(context: RuleContext, { value, file, path }: Setting): boolean {
  return Array.isArray(value) && value.length === 0 && !isMalformed(context, file, path)
}

/** `bft-custom`: names and a threshold that they can reach. */
function checkChosenSet(context: RuleContext, block: 'scanClient' | 'synchronizer'): void {
  need(context, block, 'svNames', 'bft-custom')
  need(context, block, 'threshold', 'bft-custom')
  const names = context.settings.get('validator', `${block}.svNames`)
  const threshold = context.settings.get('validator', `${block}.threshold`)
  const length = Array.isArray(names?.value) ? names.value.length : undefined
  if (names !== undefined && isEmptyList(context, names)) {
    tell(context, 'error', {
      rule: 'threshold',
      about: subjectOf(names),
      message: `${block}.svNames is empty, and bft-custom needs names.`,
    })
  }
  if (
    threshold !== undefined &&
    length !== undefined &&
    length > 0 &&
    Number(threshold.value) > length
  ) {
    tell(context, 'error', {
      rule: 'threshold',
      about: subjectOf(threshold),
      message: `${block}.threshold is ${threshold.value}, but only ${length} names are given, so it could never be reached.`,
      hint: `threshold: ${length}`,
    })
  }
}

function need(context: RuleContext, block: string, member: string, type: string): void {
  const path = `${block}.${member}`
  if (isWritten(context, 'validator', path)) return
  tell(context, 'error', {
    rule: 'required',
    about: subjectAt(context, 'validator', path),
    message: `${path} is missing, and ${type} needs it.`,
  })
}

export function checkSequencerConnection(context: RuleContext): void {
  const { settings } = context
  const fromScan = settings.get('validator', 'useSequencerConnectionsFromScan')
  const url = settings.get('validator', 'decentralizedSynchronizerUrl')
  if (settings.membersOf('validator', 'synchronizer').length > 0) {
    for (const setting of [fromScan, url]) {
      if (setting === undefined) continue
      tell(context, 'warning', {
        rule: 'ignored',
        about: subjectOf(setting),
        message: `${nameOf(setting)} is ignored, because the block synchronizer is given.`,
      })
    }
    checkSynchronizer(context)
    return
  }
  if (fromScan?.value === false) {
    if (!isWritten(context, 'validator', 'decentralizedSynchronizerUrl')) {
      tell(context, 'error', {
        rule: 'required',
        about: {
          ...subjectOf(fromScan),
          key: 'decentralizedSynchronizerUrl',
          path: 'decentralizedSynchronizerUrl',
        },
        message:
          'decentralizedSynchronizerUrl is missing, and useSequencerConnectionsFromScan: false needs it.',
        hint: 'decentralizedSynchronizerUrl: "https://sequencer.sv-1.testnet.example.net"',
      })
    }
    tell(context, 'warning', {
      rule: 'single-trust',
      about: subjectOf(fromScan),
      message: `useSequencerConnectionsFromScan: false trusts one sequencer. ${SINGLE_TRUST}`,
    })
  } else if (url !== undefined && settings.value('validator', 'svValidator') !== true) {
    tell(context, 'warning', {
      rule: 'ignored',
      about: subjectOf(url),
      message: `${nameOf(url)} is ignored, because useSequencerConnectionsFromScan is not false.`,
      hint: 'useSequencerConnectionsFromScan: false',
    })
  }
}

function checkSynchronizer(context: RuleContext): void {
  const { settings } = context
  const written = (name: string) =>
    settings.placeOf('validator', `synchronizer.${name}`) !== undefined
  const type = sequencerMode(context)
  if (type === undefined) {
    if (!isWritten(context, 'validator', 'synchronizer.connectionType')) {
      need(context, 'synchronizer', 'connectionType', 'the block synchronizer')
    }
    return
  }
  const useless = {
    'trust-single': ['svNames', 'threshold'],
    'bft-custom': ['url'],
    bft: ['url', 'svNames', 'threshold'],
  }[type]
  const present = useless.filter(written)
  const fatal = type !== 'bft' || present.length === useless.length
  for (const name of present) {
    tell(context, fatal ? 'error' : 'warning', {
      rule: fatal ? 'synchronizer' : 'ignored',
      about: subjectAt(context, 'validator', `synchronizer.${name}`),
      message: `synchronizer.${name} does not go with connectionType ${type}.`,
      hint: `Remove synchronizer.${name}.`,
    })
  }
  if (type === 'bft-custom') checkChosenSet(context, 'synchronizer')
  if (type !== 'trust-single') return
  need(context, 'synchronizer', 'url', type)
  const about = subjectAt(context, 'validator', 'synchronizer.url')
  tell(context, 'warning', {
    rule: 'single-trust',
    about,
    message: `synchronizer trusts one sequencer. ${SINGLE_TRUST}`,
  })
}

/** HOCON has no connection type: a URL means one trusted sequencer, names a chosen set. */
export function sequencerMode(
  context: Pick<RuleContext, 'settings'>,
): 'bft' | 'bft-custom' | 'trust-single' | undefined {
  const { settings } = context
  const type = settings.value<'bft' | 'bft-custom' | 'trust-single'>(
    'validator',
    'synchronizer.connectionType',
  )
  if (type !== undefined) return type
  const fromHocon = (name: string) =>
    settings.get('validator', `synchronizer.${name}`)?.name.startsWith('canton.') === true
  if (fromHocon('url')) return 'trust-single'
  return fromHocon('svNames') ? 'bft-custom' : undefined
}
