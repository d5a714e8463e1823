import assert from 'node:assert/strict'
import { createHistogram, type HistogramState, observe } from './histogram.ts'
import { type LabelPair, renderLabels } from './labels.ts'
import type { NativeOptions } from './native-buckets.ts'

/*
 * What the parts hold is a handle, what the exposition reads is the series behind it. Values live
 * in typed arrays: adding to a number in one allocates nothing, and handles stay valid for as long
 * as someone keeps them.
 */

export type Counter = {
  /** Adds to the counter; 1 when not told. Never negative. */
  inc(by?: number): void
  /** For what someone else counts, such as the CPU time: raises the counter to that total. */
  advanceTo(total: number): void
}

export type Gauge = {
  set(value: number): void
  inc(by?: number): void
  dec(by?: number): void
}

export type Histogram = {
  /** Durations are in seconds, sizes in bytes. */
  observe(value: number): void
}

type SeriesOf<Handle, State> = {
  readonly handle: Handle
  readonly state: State
  readonly pairs: readonly LabelPair[]
  /** The pairs as text, without braces. */
  readonly labels: string
  /** The pairs as they stand in the protobuf form, once somebody has asked for it. */
  pairsEncoded?: Uint8Array
  readonly createdMs: number
}

export type CounterSeries = SeriesOf<Counter, Float64Array>
export type GaugeSeries = SeriesOf<Gauge, Float64Array>
export type HistogramSeries = SeriesOf<Histogram, HistogramState>

type FamilyOf<Kind, Series> = {
  readonly kind: Kind
  readonly name: string
  readonly help: string
  /** By the text of their labels. */
  readonly series: Map<string, Series>
}

export type Family =
  | FamilyOf<'counter', CounterSeries>
  | FamilyOf<'gauge', GaugeSeries>
  | FamilyOf<'histogram', HistogramSeries>

export function createCounterSeries(pairs: readonly LabelPair[], createdMs: number): CounterSeries {
  const state = new Float64Array(1)
  const handle: Counter = {
    inc(by = 1) {
      if (!(by >= 0)) assert.fail(`A counter only rises; it cannot take ${by}.`)
      state[0] = (state[0] as number) + by
    },
    advanceTo(total) {
      if (total > (state[0] as number)) state[0] = total
    },
  }
  return { handle, state, pairs, labels: renderLabels(pairs), createdMs }
}

export function createGaugeSeries(pairs: readonly LabelPair[], createdMs: number): GaugeSeries {
  const state = new Float64Array(1)
  const handle: Gauge = {
    set(value) {
      state[0] = value
    },
    inc(by = 1) {
      state[0] = (state[0] as number) + by
    },
    dec(by = 1) {
      state[0] = (state[0] as number) - by
    },
  }
  return { handle, state, pairs, labels: renderLabels(pairs), createdMs }
}

export function createHistogramSeries(options: {
  pairs: readonly LabelPair[]
  createdMs: number
  buckets: readonly number[]
  native: NativeOptions | undefined
}): HistogramSeries {
  const { pairs, createdMs, buckets, native } = options
  const state = createHistogram({ buckets, native })
  const handle: Histogram = { observe: (value) => observe(state, value) }
  return { handle, state, pairs, labels: renderLabels(pairs), createdMs }
}
