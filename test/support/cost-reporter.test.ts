import { expect, test } from 'vitest'
import { reportOf } from './cost-reporter.ts'

test('a report adds up the files of each folder, and names what costs most first', () => {
  const written = '1.25 test/smtp/direct.test.ts\n20.50 test/fault/killed.test.ts\n2.00 test/smtp/relay.test.ts\n'
  expect(reportOf(written).split('\n')).toEqual([
    'Processor time: 23.8 s for 3 files, without PostgreSQL. The folders with the most of it:',
    '   20.5 s test/fault',
    '    3.3 s test/smtp',
    'The files with the most of it:',
    '   20.5 s test/fault/killed.test.ts',
    '    2.0 s test/smtp/relay.test.ts',
    '    1.3 s test/smtp/direct.test.ts',
  ])
})

test('a report names ten files at most', () => {
  const written = Array.from({ length: 12 }, (_, n) => `${n}.00 test/one/n${n}.test.ts\n`).join('')
  const files = reportOf(written).split('The files with the most of it:\n')[1]?.split('\n') ?? []
  expect([files.length, files.at(0), files.at(-1)]).toEqual([
    10,
    '   11.0 s test/one/n11.test.ts',
    '    2.0 s test/one/n2.test.ts',
  ])
})
