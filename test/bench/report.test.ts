import { describe, expect, test } from 'vitest'
import type { Result } from '../../scripts/bench/benchmark.ts'
import { formatGoal, formatNumber, toMarkdown, toText, withSections } from '../../scripts/bench/report.ts'

const about = { measures: 'how fast it is', baseline: 'something bare' }
const machine = {
  date: '2026-03-01',
  cpu: 'A CPU',
  cores: 2,
  memoryGiB: 24,
  system: 'linux 6',
  node: 'v24.0.0',
  postgres: '18.4',
}
const result: Result = {
  name: 'drain',
  rounds: 3,
  seconds: 8,
  size: 1,
  measurements: [{ side: 'service', figure: 'delivered', unit: '/s', values: [900, 7_000, 8_123.4] }],
  targets: [
    { figure: 'service to bare POSTs', value: 0.34, goal: { atLeast: 0.4 } },
    { figure: 'p99', unit: 'ms', value: 12.34, goal: { atMost: 50 } },
  ],
  costs: [{ side: 'service', process: 'postgres', cpuSeconds: 3.21 }],
  notes: ['A note | with a bar.'],
  peakBytes: { postgres: 2 ** 27 },
}

test('numbers have the digits they are worth', () => {
  expect([0.345, 12.34, 8_123.4, Number.NaN].map(formatNumber)).toEqual(['0.35', '12.3', '8,123', '–'])
})

test('a goal tells its direction and unit', () => {
  expect(formatGoal({ goal: { atLeast: 20_000 }, unit: '/s' })).toBe('≥ 20,000 /s')
  expect(formatGoal({ goal: { atMost: 2 } })).toBe('≤ 2')
})

describe('at the terminal', () => {
  const lines = toText(result, about)
    .split('\n')
    .map((line) => line.trim().split(/\s{2,}/))

  test('a figure has its median, least and greatest', () => {
    expect(lines).toContainEqual(['service', 'delivered', '7,000 /s', '900', '8,123'])
  })

  test('a target says whether it is met', () => {
    expect(lines).toContainEqual(['service to bare POSTs', '0.34', '≥ 0.4', 'NOT MET'])
    expect(lines).toContainEqual(['p99', '12.3 ms', '≤ 50 ms', 'met'])
  })

  test('processor time and memory stand under their process', () => {
    expect(lines).toContainEqual(['service', 'CPU s a round', '3.21'])
    expect(lines).toContainEqual(['peak memory', '128 MiB'])
  })

  test('a part of the prepared data is owned up to', () => {
    expect(toText({ ...result, size: 0.1 }, about)).toContain('10.0 % of the prepared data')
  })
})

const drain = toMarkdown(result, about, machine)

test('RESULTS.md names the machine and holds the tables', () => {
  expect(drain).toContain('2026-03-01: A CPU, 2 cores, 24 GiB, linux 6, Node v24.0.0, PostgreSQL 18.4.')
  expect(drain).toContain('| service to bare POSTs | 0.34 | ≥ 0.4 | NOT MET |')
})

test('RESULTS.md keeps the sections of other benchmarks, in the order of all', () => {
  const names = ['drain', 'flow', 'api']
  const first = withSections('', { api: '## api\n\nold', drain: '## drain\n\nold' }, names)
  const second = withSections(first, { drain: '## drain\n\nnew', flow: '## flow\n\nnew' }, names)
  expect(second.match(/^## .*\n\n.*$/gm)).toEqual(['## drain\n\nnew', '## flow\n\nnew', '## api\n\nold'])
  expect(second.match(/^# /gm)).toHaveLength(1)
  expect(withSections(second, {}, names)).toBe(second)
})
