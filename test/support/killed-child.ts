import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from './engines.ts'

/**
 * Lets a program of this folder work until it has told something, and at random a little longer; then
 * it is killed. Returns the whole lines that it told.
 */
export async function workUntilKilled(
  t: Cleanup,
  program: string,
  args: string[],
  delayMsMax: number,
): Promise<string[]> {
  const file = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => {
    child.kill('SIGKILL')
  })
  const gone = once(child, 'exit')
  let errors = ''
  child.stderr.on('data', (text) => {
    errors += text
  })
  let text = ''
  let isDying = false
  for await (const chunk of child.stdout) {
    text += chunk
    if (isDying) continue
    isDying = true
    setTimeout(() => child.kill('SIGKILL'), Math.random() * delayMsMax)
  }
  await gone
  assert.ok(isDying, `${program} ended by itself: ${errors}`)
  return text.split('\n').slice(0, -1)
}
