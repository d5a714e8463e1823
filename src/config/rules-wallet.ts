import { VALIDATOR_APP } from './canton-keys.ts'
import { printDuration } from './duration.ts'
import { REAL_NAMESPACE } from './kinds.ts'
import {
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
import { printPath } from './tree.ts'

export const POLLING_INTERVAL_MS = 30_000
const RESERVED_TRAFFIC_BYTES = 200_000
const MIN_TOPUP_INTERVAL_MS = 600_000
export const DEDUPLICATION_MS = 24 * 3_600_000
export const PREAPPROVAL_LIFETIME_MS = 90 * 86_400_000
export const PREAPPROVAL_RENEWAL_MS = 30 * 86_400_000

export function checkWallet(context: RuleContext): void {
  checkWalletUsers(context)
  checkSweeps(context)
  checkAutoAccept(context)
  checkDisabledWallet(context)
  const { settings } = context
  const lifetime = settings.get(
    'canton',
    `${VALIDATOR_APP}.transfer-preapproval.preapproval-lifetime`,
  )
  const renewal = settings.get('canton', `${VALIDATOR_APP}.transfer-preapproval.renewal-duration`)
  const about = renewal ?? lifetime
  const lifetimeMs = Number(lifetime?.value ?? PREAPPROVAL_LIFETIME_MS)
  const renewalMs = Number(renewal?.value ?? PREAPPROVAL_RENEWAL_MS)
  if (about !== undefined && renewalMs >= lifetimeMs) {
    tell(context, 'error', {
      rule: 'preapproval',
      about: subjectOf(about),
      message: `The renewal of transfer preapprovals (${printDuration(renewalMs)}) must be shorter than their lifetime (${printDuration(lifetimeMs)}).`,
    })
  }
}

function checkWalletUsers(context: RuleContext): void {
  const { settings } = context
  const users = settings.get('validator', 'validatorWalletUsers')
  if (
    users !== undefined &&
    placeInValues(context, 'validator', 'validatorWalletUser') !== undefined
  ) {
    tell(context, 'error', {
      rule: 'wallet-users',
      about: subjectOf(users),
      message: 'validatorWalletUsers and validatorWalletUser exclude each other.',
      hint: 'Keep validatorWalletUsers and put every user into it.',
    })
  }
  const written =
    isWritten(context, 'validator', 'validatorWalletUsers') ||
    isWritten(context, 'validator', 'validatorWalletUser')
  if (!written && context.joining && isReadable(context, 'validator')) {
    tell(context, 'error', {
      rule: 'wallet-users',
      about: subjectAt(context, 'validator', 'validatorWalletUsers'),
      message: 'validatorWalletUsers is missing: nobody could administer the wallet.',
      hint: 'validatorWalletUsers: ["auth0|64b1f0c2d9e8a7f6b5c4d3e2"]',
    })
  }
  const list = Array.isArray(users?.value) ? (users.value as string[]) : []
  if (users !== undefined && new Set(list).size !== list.length) {
    tell(context, 'warning', {
      rule: 'wallet-users',
      about: subjectOf(users),
      message: 'validatorWalletUsers names a user twice.',
    })
  }
  const malformed = context.problems.some(
    ({ key, severity }) => key === 'validatorWalletUsers' && severity === 'error',
  )
  if (users !== undefined && list.length === 0 && !malformed) {
    tell(context, 'notice', {
      rule: 'wallet-users',
      about: subjectOf(users),
      message:
        'validatorWalletUsers is empty; the user of the ledger API secret administers the wallet.',
    })
  }
}

function checkSweeps(context: RuleContext): void {
  const { settings } = context
  for (const sender of settings.membersOf('validator', 'walletSweep')) {
    const at = printPath(['walletSweep', sender])
    for (const name of ['maxBalanceUSD', 'minBalanceUSD', 'receiver'])
      requireMember(context, at, name)
    const max = settings.get('validator', `${at}.maxBalanceUSD`)
    const min = settings.get('validator', `${at}.minBalanceUSD`)
    const receiver = settings.get('validator', `${at}.receiver`)
    if (receiver?.value === sender) {
      tell(context, 'error', {
        rule: 'sweep',
        about: subjectOf(receiver),
        message:
          'walletSweep.receiver is the sender itself, which would send funds in a circle for ever.',
      })
    }
    const order =
      max === undefined || min === undefined
        ? undefined
        : compareDecimals(String(min.value), String(max.value))
    if (order !== undefined && order >= 0) {
      tell(context, order > 0 ? 'error' : 'warning', {
        rule: 'sweep',
        about: subjectOf(min as Setting),
        message:
          order > 0
            ? `walletSweep.minBalanceUSD (${min?.value}) is above walletSweep.maxBalanceUSD (${max?.value}), so a sweep would have to send a negative amount.`
            : 'walletSweep.minBalanceUSD equals walletSweep.maxBalanceUSD, so every small income is swept on its own.',
      })
    }
    const preapproval = settings.get('validator', `${at}.useTransferPreapproval`)
    if (preapproval?.value === true) {
      tell(context, 'notice', {
        rule: 'sweep',
        about: subjectOf(preapproval),
        message:
          'walletSweep.useTransferPreapproval needs a preapproval of the receiver; without one the sweep waits.',
      })
    }
    warnNamespace(context, sender, subjectAt(context, 'validator', at))
    if (receiver !== undefined) warnNamespace(context, String(receiver.value), subjectOf(receiver))
  }
}

function requireMember(context: RuleContext, at: string, name: string): void {
  if (context.settings.get('validator', `${at}.${name}`) !== undefined) return
  const told = context.problems.some(
    ({ path, severity }) => severity === 'error' && path.startsWith(at),
  )
  if (!told) {
    const about = subjectAt(context, 'validator', `${at}.${name}`)
    tell(context, 'error', { rule: 'required', about, message: `${about.key} is missing.` })
  }
}

function checkAutoAccept(context: RuleContext): void {
  const { settings } = context
  for (const receiver of settings.membersOf('validator', 'autoAcceptTransfers')) {
    const at = printPath(['autoAcceptTransfers', receiver])
    requireMember(context, at, 'fromParties')
    const senders = settings.get('validator', `${at}.fromParties`)
    warnNamespace(context, receiver, subjectAt(context, 'validator', at))
    if (senders === undefined) continue
    const list = senders.value as string[]
    for (const sender of list) warnNamespace(context, sender, subjectOf(senders))
    if (list.includes(receiver)) {
      tell(context, 'warning', {
        rule: 'auto-accept',
        about: subjectOf(senders),
        message: 'autoAcceptTransfers.fromParties names the receiver itself.',
      })
    }
    if (list.length === 0 && !context.problems.some(({ path }) => path.startsWith(at))) {
      tell(context, 'warning', {
        rule: 'auto-accept',
        about: subjectOf(senders),
        message: 'autoAcceptTransfers.fromParties is empty, so nothing is accepted.',
      })
    }
  }
}

function warnNamespace(
  context: RuleContext,
  party: string,
  about: ReturnType<typeof subjectOf>,
): void {
  if (!party.includes('::') || REAL_NAMESPACE.test(party)) return
  tell(context, 'warning', {
    rule: 'party-namespace',
    about,
    message: `The party id ${party} has a namespace that no network gives out: 1220 and 64 hex digits are usual. The wallet shows the whole id.`,
  })
}

function checkDisabledWallet(context: RuleContext): void {
  const { settings } = context
  const wallet = settings.get('validator', 'enableWallet')
  if (wallet?.value !== false) return
  const topUp = topUpOf(context).active ? ['topup'] : []
  for (const path of ['walletSweep', 'autoAcceptTransfers', ...topUp]) {
    if (settings.placeOf('validator', path) === undefined) continue
    tell(context, 'warning', {
      rule: 'wallet-disabled',
      about: subjectAt(context, 'validator', path),
      message: `${path} has no effect, because enableWallet is false.`,
      hint: `Remove ${path}, or write enableWallet: true.`,
    })
  }
}

/** The top-up in effect: absent blocks, a false flag and a throughput of 0 buy nothing. */
export function topUpOf({ settings }: Pick<RuleContext, 'settings'>): {
  active: boolean
  throughput: number
  intervalMs: number
  reservedBytes: number
} {
  const throughput = settings.value<number>('validator', 'topup.targetThroughput') ?? 0
  return {
    active: settings.value('validator', 'topup.enabled') !== false && throughput > 0,
    throughput,
    intervalMs:
      settings.value<number>('validator', 'topup.minTopupInterval') ?? MIN_TOPUP_INTERVAL_MS,
    reservedBytes:
      settings.value<number>('validator', 'topup.reservedTraffic') ?? RESERVED_TRAFFIC_BYTES,
  }
}

export function checkTopUp(context: RuleContext): void {
  const { settings } = context
  const enabled = settings.value('validator', 'topup.enabled')
  const fromVariables =
    settings.get('validator', 'topup.targetThroughput')?.place.source.variable !== undefined
  const malformed = context.problems.some(({ key }) => key === 'topup' || key === 'topup.enabled')
  if (settings.placeOf('validator', 'topup') !== undefined && enabled !== false && !malformed) {
    for (const [name, example] of [
      ['targetThroughput', '20000'],
      ['minTopupInterval', '"1m"'],
    ] as const) {
      if (isWritten(context, 'validator', `topup.${name}`) || fromVariables) continue
      tell(context, 'error', {
        rule: 'required',
        about: subjectAt(context, 'validator', `topup.${name}`),
        message: `topup.${name} is missing: top-ups are enabled and need it.`,
        hint: `${name}: ${example}`,
      })
    }
  }
  const { active, throughput, intervalMs, reservedBytes } = topUpOf(context)
  const interval = settings.get('validator', 'topup.minTopupInterval')
  const intervalWrong =
    interval === undefined && isWritten(context, 'validator', 'topup.minTopupInterval')
  if (!active || intervalWrong) return
  const pollingMs =
    settings.value<number>('canton', `${VALIDATOR_APP}.automation.polling-interval`) ??
    POLLING_INTERVAL_MS
  if (intervalMs < pollingMs && interval !== undefined) {
    tell(context, 'error', {
      rule: 'top-up',
      about: subjectOf(interval),
      message: `${nameOf(interval)} is ${printDuration(intervalMs)}, shorter than the polling interval of ${printDuration(pollingMs)}, in which at most one purchase is made.`,
      hint: `${interval.key?.path.split('.').at(-1)}: "1m"`,
    })
    return
  }
  const bought = throughput * Math.floor(intervalMs / 1000)
  const target = settings.get('validator', 'topup.targetThroughput') as Setting
  if (bought !== 0 && bought <= reservedBytes) {
    tell(context, 'error', {
      rule: 'top-up',
      about: subjectOf(target),
      message: `${nameOf(target)} times topup.minTopupInterval buys ${bought} bytes, which is not more than the ${reservedBytes} bytes of topup.reservedTraffic: commands would stay blocked.`,
      hint: `targetThroughput: ${Math.floor(reservedBytes / Math.floor(intervalMs / 1000)) + 1}`,
    })
  }
}

export function checkPruning(context: RuleContext): void {
  const { settings } = context
  const retention = settings.get('validator', 'participantPruningSchedule.retention')
  for (const name of ['cron', 'maxDuration', 'retention']) {
    const path = `participantPruningSchedule.${name}`
    if (settings.placeOf('validator', 'participantPruningSchedule') === undefined) break
    if (isWritten(context, 'validator', path)) continue
    const told = context.problems.some(
      ({ key }) =>
        key.startsWith('participantPruningSchedule') ||
        key.includes('participant-pruning-schedule'),
    )
    if (!told)
      tell(context, 'error', {
        rule: 'required',
        about: subjectAt(context, 'validator', path),
        message: `${path} is missing.`,
      })
  }
  if (retention === undefined) return
  const deduplicationMs =
    settings.value<number>('validator', 'deduplicationDuration') ?? DEDUPLICATION_MS
  if (Number(retention.value) <= deduplicationMs) {
    tell(context, 'error', {
      rule: 'retention',
      about: subjectOf(retention),
      message: `${nameOf(retention)} is ${printDuration(Number(retention.value))}, and it must be longer than the ${printDuration(deduplicationMs)} for which commands are deduplicated.`,
      hint: 'retention: 30d',
    })
  } else if (Number(retention.value) < 30 * 86_400_000) {
    tell(context, 'notice', {
      rule: 'retention',
      about: subjectOf(retention),
      message: `A node that is offline for longer than ${printDuration(Number(retention.value))} may become corrupted; 30 days is a reasonable retention.`,
    })
  }
}

export function checkMigration(context: RuleContext): void {
  const { settings } = context
  const identifier = settings.get(
    'validator',
    'participantIdentitiesDumpImport.newParticipantIdentifier',
  )
  const node = settings.value<string>('validator', 'nodeIdentifier')
  if (identifier !== undefined && node !== undefined && identifier.value !== node) {
    tell(context, 'error', {
      rule: 'identity-restore',
      about: subjectOf(identifier),
      message: `participantIdentitiesDumpImport.newParticipantIdentifier must equal nodeIdentifier (${node}).`,
      hint: `newParticipantIdentifier: "${node}"`,
    })
  }
  const migrate = settings.get('validator', 'migrateValidatorParty')
  if (
    migrate?.value === true &&
    settings.placeOf('validator', 'participantIdentitiesDumpImport') === undefined
  ) {
    tell(context, 'error', {
      rule: 'identity-restore',
      about: subjectOf(migrate),
      message: 'migrateValidatorParty needs the dump that participantIdentitiesDumpImport names.',
    })
  }
  const migrating = settings.get('validator', 'migration.migrating')
  if (migrating?.value === true) {
    tell(context, 'notice', {
      rule: 'migrating',
      about: subjectOf(migrating),
      message:
        'migration.migrating is for the one deployment that migrates; set it back to false afterwards.',
    })
  }
}

/** Compares plain decimal texts without rounding. */
function compareDecimals(a: string, b: string): number {
  const [wholeA = '', fractionA = ''] = a.split('.')
  const [wholeB = '', fractionB = ''] = b.split('.')
  const width = Math.max(fractionA.length, fractionB.length)
  const difference =
    BigInt(wholeA + fractionA.padEnd(width, '0')) - BigInt(wholeB + fractionB.padEnd(width, '0'))
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
