import { expect, test } from 'vitest'
import { parseStat, parseStatusBytes } from '../../scripts/bench/usage.ts'

/** Of proc(5): pid, name, state, parent, 9 more, then four times in hundredths of a second. */
function stat(name: string): string {
  return `71 (${name}) S 70 71 71 0 -1 4194304 100 200 3 4 150 50 1000 24 20 0 11 0 12345 1000000 2000`
}

test('processor times and the parent are read, whatever the process is called', () => {
  const expected = { parent: 70, cpuSeconds: 2, childrenCpuSeconds: 10.24 }
  expect(parseStat(stat('node'))).toEqual(expected)
  expect(parseStat(stat('a) R 1 (b'))).toEqual(expected)
})

test('memory is read in bytes, and is none where the line is missing', () => {
  const status = 'Name:\tnode\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n'
  expect(parseStatusBytes(status, 'VmHWM')).toBe(2 ** 21)
  expect(parseStatusBytes(status, 'RssShmem')).toBe(0)
})
