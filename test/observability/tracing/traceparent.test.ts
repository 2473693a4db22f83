import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatTraceparent, parseTraceparent } from '../../../server/observability/tracing/traceparent.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

function hexOf(length: number) {
  return fc
    .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
    .filter((value) => !/^0+$/.test(value))
}

test('parseTraceparent reads back what formatTraceparent wrote', () => {
  const contexts = fc.record({ traceId: hexOf(32), spanId: hexOf(16), sampled: fc.boolean() })
  fc.assert(
    fc.property(contexts, (context) => {
      expect(parseTraceparent(formatTraceparent(context))).toEqual(context)
    }),
  )
})

test.each([
  ['a flag nobody knows', `00-${traceId}-${spanId}-ff`, true],
  ['the other flags alone', `00-${traceId}-${spanId}-fe`, false],
  ['a later version', `cc-${traceId}-${spanId}-01`, true],
  ['a later version with more fields', `cc-${traceId}-${spanId}-01-what the future will be like`, true],
])('parseTraceparent takes %s', (_, value, sampled) => {
  expect(parseTraceparent(value)).toEqual({ traceId, spanId, sampled })
})

test.each([
  ['nothing', ''],
  ['the version that is none', `ff-${traceId}-${spanId}-01`],
  ['more fields than its version has', `00-${traceId}-${spanId}-01-more`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['a span of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['capitals', `00-${traceId.toUpperCase()}-${spanId}-01`],
  ['a short trace', `00-${traceId.slice(1)}-${spanId}-01`],
  ['two in one', `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
  ['a line break', `00-${traceId}-${spanId}-01\n`],
])('parseTraceparent refuses %s', (_, value) => {
  expect(parseTraceparent(value)).toBeNull()
})

test('parseTraceparent takes nothing else for one, and is not harmed by it', () => {
  fc.assert(fc.property(fc.string(), (value) => parseTraceparent(value) === null))
})
