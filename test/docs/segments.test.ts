import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { conditionLimits, contactFields, engagements, operatorsOf } from '../../contract/segment-operators.ts'
import { usualMatchLimits } from '../../server/audiences/matching-contacts.ts'
import { codeIn, fenceOf, readDocument, tableOf, unwrapped } from './document.ts'

/*
 * Statements of the guide to segments and of the limits, compared with the tables in the code.
 */

const guide = readDocument('docs/guides/segments.md')
const limits = readDocument('docs/reference/limits.md').text

const written = (number: number) => number.toLocaleString('en')

test('the first example is a body that creates a segment', () => {
  const example = JSON.parse(fenceOf(guide.text, 'json'))
  expect(contract.segments.create.body.parse(example)).toEqual(example)
})

test('every field is listed with its type', () => {
  const rows = tableOf(guide.section('Comparisons')).map(([name = '', , type]) => [...codeIn(name), type])
  expect(rows).toEqual(Object.entries(contactFields))
})

test('every type is listed with its operators', () => {
  const [, table = ''] = guide.section('Comparisons').split('Each type has its operators.')
  const rows = tableOf(table).map(([type, names = '']) => [type, codeIn(names)])
  expect(rows).toEqual(Object.entries(operatorsOf))
})

test('every kind of engagement is listed', () => {
  const rows = tableOf(guide.section('Engagement')).map(([name = '']) => codeIn(name)[0])
  expect(rows).toEqual([...engagements])
})

test('conditions have the limits they have', () => {
  const { conditions, depth, days, valueCharacters } = conditionLimits
  expect(unwrapped(guide.section('Groups'))).toContain(
    `are at most ${conditions} together, and at most ${depth} within each other`,
  )
  expect(guide.section('Comparisons')).toContain(`text of 1 to ${valueCharacters} characters`)
  expect(guide.section('Comparisons')).toContain(`from 1 to ${written(days)}`)
  expect(limits).toContain(
    `${conditions} with their groups, ${depth} within each other; texts of ${valueCharacters} characters; ${written(days)} days`,
  )
})

test('counts have the limits they have', () => {
  const { exactUpTo, exactMs, longestMs, lookMs, sample, atOnce, patienceMs } = usualMatchLimits
  const costs = unwrapped(guide.section('What it costs'))
  expect(costs).toContain(`less than ${exactMs / 1_000} seconds`)
  expect(costs).toContain(`an audience of up to about ${written(exactUpTo)} contacts`)
  expect(costs).toContain(`${written(sample)} contacts at most, chosen`)
  expect(costs).toContain(
    `${atOnce} at once for all accounts. One that waits longer than ${patienceMs / 1_000} seconds`,
  )
  expect(limits).toContain(`one at a time for each account and ${atOnce} for all in each process; a request waits`)
  expect(limits).toContain(
    `an exact count takes ${exactMs / 1_000} s at most, of up to ${written(sample)} contacts ${longestMs / 1_000} s`,
  )
  expect(limits).toContain(`in audiences of more than about ${written(exactUpTo)}`)
  expect(limits).toContain(`longer than ${lookMs / 1_000} s is tried again with fewer`)
})
