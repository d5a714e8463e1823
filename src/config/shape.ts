import type { Key } from './keys.ts'

/** The rows of a table as the tree that they describe. */
export type Shape = {
  key: Key | undefined
  /** Steps from the root, `*` and `[]` included. */
  steps: readonly string[]
  members: Map<string, Shape>
  /** What stands under any key of a map. */
  keyed: Shape | undefined
  /** What the items of a list are. */
  item: Shape | undefined
}

export function shapeOf(keys: readonly Key[]): Shape {
  const root = newShape([])
  for (const key of keys) shapeAt(root, key.path).key = key
  return root
}

function shapeAt(root: Shape, path: string): Shape {
  let shape = root
  for (const step of stepsOf(path)) {
    const steps = [...shape.steps, step]
    if (step === '*') {
      shape.keyed ??= newShape(steps)
      shape = shape.keyed
    } else if (step === '[]') {
      shape.item ??= newShape(steps)
      shape = shape.item
    } else {
      const next: Shape = shape.members.get(step) ?? newShape(steps)
      shape.members.set(step, next)
      shape = next
    }
  }
  return shape
}

export function stepsOf(path: string): string[] {
  return path
    .split('.')
    .flatMap((part) => (part.endsWith('[]') ? [part.slice(0, -2), '[]'] : [part]))
}

function newShape(steps: readonly string[]): Shape {
  return { key: undefined, steps, members: new Map(), keyed: undefined, item: undefined }
}

/** The key as the manual names it, map keys and list items left out. */
export function keyName(steps: readonly string[]): string {
  return steps.filter((step) => step !== '*' && step !== '[]').join('.')
}

export function isLeaf(shape: Shape): boolean {
  return shape.members.size === 0 && shape.keyed === undefined && shape.item === undefined
}
