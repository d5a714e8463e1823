import type { SectionReport } from './table.ts'
import type { Workspace } from './workspace.ts'

export type BenchOptions = {
  /** Updates in the generated history. */
  count: number
  /** Each server, or each way to do something, is measured this often, in turns. */
  rounds: number
  /** How long one measurement of a server lasts, before the weight of its row. */
  sliceMs: number
  workspace: Workspace
  /** Tells whoever waits what is under way. */
  say(text: string): void
}

/** A part of the bench that can be run alone, by its name. */
export type Section = {
  name: string
  summary: string
  run(options: BenchOptions): Promise<SectionReport>
}
