import type { NodeConfig } from '../config/node-config.ts'
import type { Settings } from '../config/settings.ts'

/** What is to be deployed: a checked configuration, and the sources that the container reads again. */
export type DeployRequest = {
  readonly config: NodeConfig
  /** What was read: names of secrets, keys of the pod, whether a database server is described. */
  readonly settings: Settings
  readonly image: string
  /** Unknown keys are warnings in the container too. */
  readonly isLenient: boolean
  readonly values: readonly GivenValues[]
  readonly variables: readonly GivenVariable[]
  /** A file of variables, as the operator named it. */
  readonly envFile: string | undefined
  /** Whether secrets were given, so that one that is absent is known to be. */
  readonly hasSecrets: boolean
  readonly files: readonly GivenFile[]
}

/** A values file of one of the apps. */
export type GivenValues = {
  readonly app: 'validator' | 'participant'
  /** As the operator named it. */
  readonly path: string
  readonly text: string
  readonly holdsSecret: boolean
}

export type GivenVariable = {
  readonly name: string
  readonly text: string
  readonly isSecret: boolean
  readonly from: 'environment' | 'env-file'
}

/** A certificate or key that the configuration names. */
export type GivenFile = {
  /** As the configuration names it, which counts in the container. */
  readonly written: string
  /** Where it is on this machine. */
  readonly path: string
}

/** What cannot be deployed, in a sentence for the operator. */
export class DeployError extends Error {
  override name = 'DeployError'
}
