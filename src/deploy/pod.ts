import type { ValuesFile } from '../config/keys.ts'
import type { DeployRequest } from './request.ts'

type Map = Readonly<Record<string, unknown>>

/** Keys of the reference charts that describe the pod; the insides are the cluster's to judge. */
export type PodSettings = {
  readonly annotations: Map
  readonly labels: Map
  /** Members of the specification of the pod. */
  readonly pod: Map
  readonly podSecurity: Map
  /** Members of the specification of the container. */
  readonly container: Map
  readonly containerSecurity: Map
  readonly volumes: readonly unknown[]
  readonly volumeMounts: readonly unknown[]
  readonly initContainers: readonly unknown[]
}

const POD_KEYS = [
  'affinity',
  'nodeSelector',
  'tolerations',
  'priorityClassName',
  'serviceAccountName',
]
const CONTAINER_KEYS = ['resources', 'imagePullPolicy']

/**
 * The apps share one pod: what one of them says alone holds, and where both speak, the validator's
 * word. Annotations, labels and volumes of both come together.
 */
export function podSettings(
  { settings }: DeployRequest,
  files: readonly ValuesFile[],
): PodSettings {
  const all = <T>(key: string): T[] =>
    files.flatMap((file) => {
      const value = settings.value<T>(file, key)
      return value === undefined ? [] : [value]
    })
  const first = (keys: readonly string[]): Map =>
    Object.fromEntries(
      keys.flatMap((key) => {
        const [value] = all<unknown>(key)
        return value === undefined ? [] : [[key, value]]
      }),
    )
  const merged = (key: string, member: string): Map =>
    Object.assign(
      {},
      ...all<Map>(key)
        .map((map) => map[member] ?? {})
        .reverse(),
    )
  // The charts name the contexts of containers by app, and newer ones keep them in a block.
  const contextOf = (file: ValuesFile): Map => {
    const contexts = settings.value<Record<string, Map | undefined>>(file, 'securityContexts')
    const containers = contexts?.containers as Record<string, Map | undefined> | undefined
    return contexts?.[file] ?? containers?.[file] ?? {}
  }
  const isReloaded = all<boolean>('enableReloader').includes(true)
  return {
    annotations: {
      ...(isReloaded ? { 'reloader.stakater.com/auto': 'true' } : {}),
      ...merged('pod', 'annotations'),
    },
    labels: { ...Object.assign({}, ...all<Map>('appLabels')), ...merged('pod', 'labels') },
    pod: {
      automountServiceAccountToken: all<boolean>('automountServiceAccountToken')[0] ?? false,
      ...first(POD_KEYS),
    },
    podSecurity: merged('securityContexts', 'pod'),
    container: first(CONTAINER_KEYS),
    containerSecurity: Object.assign({}, ...files.map(contextOf).reverse()),
    volumes: distinctByName(all<unknown[]>('extraVolumes').flat()),
    volumeMounts: distinctByName(all<unknown[]>('extraVolumeMounts').flat()),
    initContainers: distinctByName(all<unknown[]>('extraInitContainers').flat()),
  }
}

/** Both values files may carry the same list; a cluster refuses names that come twice. */
function distinctByName(items: readonly unknown[]): unknown[] {
  const texts = items.map((item) => JSON.stringify(item))
  return items.filter((_, index) => texts.indexOf(texts[index] as string) === index)
}
