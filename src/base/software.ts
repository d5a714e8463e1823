import { readFileSync } from 'node:fs'

export type Software = { name: string; version: string; releasedAt: string }

/** What package.json says of this version. */
export function readSoftware(): Software {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { name, version, releasedAt } = JSON.parse(text)
  return { name, version, releasedAt }
}
