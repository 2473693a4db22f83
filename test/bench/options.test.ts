import { expect, test } from 'vitest'
import { readOptions, UsageError } from '../../scripts/bench/options.ts'

const known = ['drain', 'flow']

test('without arguments everything is run, as each benchmark has it', () => {
  expect(readOptions([], known)).toEqual({
    names: [],
    rounds: null,
    seconds: null,
    size: 1,
    profileDir: null,
    json: false,
    write: false,
    help: false,
  })
})

test('names and options may stand in any order', () => {
  const options = readOptions(['--rounds', '2', 'flow', '--json', '--seconds=0.5', '--profile', 'out', 'drain'], known)
  expect(options).toMatchObject({ names: ['flow', 'drain'], rounds: 2, seconds: 0.5, profileDir: 'out', json: true })
})

test.each([
  [['drian'], 'no benchmark "drian"; there are drain, flow'],
  [['--rounds', '1.5'], '--rounds is "1.5"'],
  [['--rounds', '0'], 'at least 1'],
  [['--seconds', 'ten'], '--seconds is "ten"'],
  [['--seconds', ''], '--seconds is ""'],
  [['--size', '2'], 'at most 1'],
  [['--fast'], '--fast'],
])('a mistake is told with what is allowed: %j', (args, message) => {
  expect(() => readOptions(args, known)).toThrow(UsageError)
  expect(() => readOptions(args, known)).toThrow(message)
})
