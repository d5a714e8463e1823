import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CONTAINER_USER, DATA_DIRECTORY } from './container.ts'

const ROOT = join(import.meta.dirname, '../..')
const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8')
const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

test('the image runs on the Node that the package pins', () => {
  const bases = [...dockerfile.matchAll(/^FROM node:(\S+)-slim/gm)].map((match) => match[1])
  assert.deepEqual(bases, [dependencies.node, dependencies.node])
})

test('the image has the user and the directory that the manifests expect', () => {
  assert.match(dockerfile, new RegExp(`^USER ${CONTAINER_USER}:${CONTAINER_USER}$`, 'm'))
  assert.match(dockerfile, new RegExp(`^VOLUME ${DATA_DIRECTORY}$`, 'm'))
})

test('what is copied exists and is not ignored', () => {
  const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
  const copied = [...dockerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap((match) =>
    (match[1] as string).split(' '),
  )
  assert.ok(copied.includes('src'))
  for (const path of copied) {
    assert.ok(existsSync(join(ROOT, path)), `${path} exists`)
    assert.ok(ignored.includes(`!${path}`), `${path} is let through`)
  }
})
