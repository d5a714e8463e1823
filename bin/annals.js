#!/usr/bin/env node
// Runs the program on the Node that this package is pinned to, whichever Node comes first on the
// PATH. This file alone has to run on older ones.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PINNED_MAJOR = 24
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const source = join(root, 'src/cli/main.ts')
// A published package holds compiled files: Node does not run TypeScript inside node_modules.
const program = existsSync(source) ? source : join(root, 'dist/cli/main.js')

if (Number(process.versions.node.split('.')[0]) === PINNED_MAJOR) {
  // Before the first file of ours, or each start would load what strips types again.
  nodeModule.enableCompileCache()
  await import(program)
} else {
  // The directory that the pinned Node would choose itself, named before it reads any file.
  const cache = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'node-compile-cache')
  const child = spawn(findPinnedNode(), [program, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) {
    process.on(signal, () => child.kill(signal))
  }
  child.on('error', (error) => {
    console.error(`annals cannot start Node ${PINNED_MAJOR}: ${error.message}. Run "npm ci" again.`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

function findPinnedNode() {
  const manifest = nodeModule.createRequire(import.meta.url).resolve('node/package.json')
  return join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}
