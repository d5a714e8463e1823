import { isAbsolute, posix } from 'node:path'
import { pathInContainer } from './container.ts'
import type { PodSettings } from './pod.ts'
import { DeployError, type DeployRequest, type GivenFile } from './request.ts'

/** An entry of the secret with the files, and the file that it is made from. */
export function filesInSecret(
  request: DeployRequest,
  pod: PodSettings,
): { key: string; path: string }[] {
  return ownFiles(request, pod).map((file, index) => ({
    key: fileKey(file, index),
    path: file.path,
  }))
}

/** Files with relative paths lie among the values. */
export function filesBesideValues(
  request: DeployRequest,
  pod: PodSettings,
): { key: string; path: string }[] {
  return ownFiles(request, pod).flatMap((file, index) =>
    isAbsolute(file.written) ? [] : [{ key: fileKey(file, index), path: pathBeside(file) }],
  )
}

function pathBeside({ written }: GivenFile): string {
  const path = posix.normalize(written)
  if (!path.startsWith('../')) return path
  throw new DeployError(
    `The configuration names the file ${written}, and a cluster can put files only below the values. Write an absolute path.`,
  )
}

/** The files that no volume of the values brings. */
function ownFiles(request: DeployRequest, pod: PodSettings): GivenFile[] {
  const mounted = pod.volumeMounts.map((mount) =>
    String((mount as { mountPath?: unknown } | null)?.mountPath),
  )
  return request.files.filter((file) => {
    const path = pathInContainer(file)
    return !mounted.some((mount) => path === mount || path.startsWith(`${mount}/`))
  })
}

function fileKey({ written }: GivenFile, index: number): string {
  return `${index + 1}-${posix.basename(written).replaceAll(/[^\w.-]/g, '_')}`
}

type FileDirectory = { name: string; directory: string; items: { key: string; path: string }[] }

/** Whole directories are mounted, because a single file would not follow a renewed certificate. */
export function fileDirectories(request: DeployRequest, pod: PodSettings): FileDirectory[] {
  const directories = new Map<string, FileDirectory>()
  ownFiles(request, pod).forEach((file, index) => {
    if (!isAbsolute(file.written)) return
    const path = pathInContainer(file)
    const directory = posix.dirname(path)
    const known = directories.get(directory) ?? {
      name: `annals-files-${directories.size + 1}`,
      directory,
      items: [],
    }
    known.items.push({ key: fileKey(file, index), path: posix.basename(path) })
    directories.set(directory, known)
  })
  return [...directories.values()]
}
