import type { Registry } from '../metrics/registry.ts'
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from './joining.ts'
import { REFUSAL_REASONS } from './refusals.ts'
import { SECRET_OUTCOMES, type SponsorEvents } from './sponsor.ts'

/** How others join here, and how this node joins elsewhere. Every series begins at 0, so that its first rise shows. */
export function measureOnboarding(
  registry: Registry,
): SponsorEvents & { onAttempt(outcome: AttemptOutcome): void } {
  const secrets = registry.counter({
    name: 'annals_onboarding_secrets_total',
    help: 'Onboarding secrets of this sponsor, by what became of them.',
    labels: ['outcome'],
  })
  const refusals = registry.counter({
    name: 'annals_onboarding_refusals_total',
    help: 'Applications and wishes for a secret that this sponsor refused.',
    labels: ['reason'],
  })
  const attempts = registry.counter({
    name: 'annals_joining_attempts_total',
    help: 'Attempts of this node to join the network of its sponsor.',
    labels: ['outcome'],
  })
  for (const outcome of SECRET_OUTCOMES) secrets.labels({ outcome })
  for (const reason of REFUSAL_REASONS) refusals.labels({ reason })
  for (const outcome of ATTEMPT_OUTCOMES) attempts.labels({ outcome })
  return {
    onSecrets: (outcome, count) => secrets.labels({ outcome }).inc(count),
    onRefused: (reason) => refusals.labels({ reason }).inc(),
    onAttempt: (outcome) => attempts.labels({ outcome }).inc(),
  }
}
