import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plot } from './plot.ts'

const draw = (values: number[], width = 10) =>
  plot({ title: 'T', values, width, print: String, from: 'a', to: 'b' })

test('the highest column fills the plot, others their part of it', () => {
  assert.equal(
    draw([0, 4, 8, 16]),
    [
      'T',
      '16 ┤   █',
      '   ┤   █',
      '   ┤   █',
      '   ┤   █',
      ' 8 ┤  ██',
      '   ┤  ██',
      '   ┤ ███',
      ' 0 ┤ ███',
      '   └────',
      '    a  b',
    ].join('\n'),
  )
})

test('more values than columns are averaged, and nothing at all is a flat line', () => {
  const [, top, ...rest] = draw([8, 8, 0, 0, 8, 8], 3).split('\n')
  assert.equal(top, '8 ┤█ █')
  assert.equal(rest.at(-2), '  └───')
  for (const line of draw([0, 0]).split('\n').slice(1, 8)) assert.match(line, /^[ 0]*┤$/)
  assert.match(draw([]), /┤$/m)
})
