import { expect, test } from 'vitest'
import { subjectKey } from '../../server/message/subject-key.ts'

test.each([
  ['Welcome', 'welcome'],
  ['  Your   order\t#7 ', 'your order #7'],
  ['100%_\\ sure', '100%_\\ sure'],
  ['Ｆｕｌｌ ｗｉｄｔｈ', 'full width'],
  ['Zero\u200bwidth and so\u00adft', 'zerowidth and soft'],
  ['Grüße', 'grüße'],
  ['Gru\u0308ße', 'grüße'],
  ['ΟΔΟΣ', 'οδοσ'],
  ['\u200b\u2060\u3164', ''],
  ['', ''],
  ['half \ud800', 'half �'],
])('%j is searched as %j', (subject, key) => {
  expect(subjectKey(subject)).toBe(key)
})

test.each(['x', 'ß', '😀', 'é', '\ufdfa'])('of many %j no more than 60 characters are searched', (character) => {
  const key = subjectKey(character.repeat(1_000))
  expect(Array.from(key).length).toBeLessThanOrEqual(60)
  expect(key.isWellFormed()).toBe(true)
})

test('what a subject begins with has a key that the key of the subject begins with', () => {
  const subject = 'Ihre Bestellung №7 ist ΟΔΟΣ unterwegs 😀 und kommt morgen an, ganz früh am Tag'
  const characters = Array.from(subject)
  for (let length = 1; length <= characters.length; length++) {
    expect(subjectKey(subject)).toSatisfy((key: string) =>
      key.startsWith(subjectKey(characters.slice(0, length).join(''))),
    )
  }
})
