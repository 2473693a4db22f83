import { expect, test } from 'vitest'
import { simulatorDomain } from '../../contract/simulator.ts'
import { withheldFor } from '../../server/email-delivery/recipient-eligibility.ts'

const person = { domain: 'example.com', audienceId: null, suppressed: null, unsubscribed: false, withoutTopic: false }
const audienceId = 'aud_01'

test.each([
  ['an address that nothing is known of gets email', {}, null],
  ['a bounced address gets no email', { suppressed: 'hard_bounce' }, 'suppressed'],
  ['a bounced address gets no email to an audience', { suppressed: 'hard_bounce', audienceId }, 'suppressed'],
  ['a person who unsubscribed by a link gets transactional email', { suppressed: 'unsubscribe' }, null],
  [
    'a person who unsubscribed by a link gets no email to an audience',
    { suppressed: 'unsubscribe', audienceId },
    'suppressed',
  ],
  ['an unsubscribed contact gets transactional email', { unsubscribed: true }, null],
  ['an unsubscribed contact gets no email to the audience', { unsubscribed: true, audienceId }, 'unsubscribed'],
  ['a person without the topic gets no email about it', { withoutTopic: true, audienceId }, 'unsubscribed'],
  ['suppression is told before unsubscribing', { suppressed: 'manual', unsubscribed: true, audienceId }, 'suppressed'],
  [
    'the simulator gets everything',
    { domain: simulatorDomain, suppressed: 'hard_bounce', unsubscribed: true, withoutTopic: true, audienceId },
    null,
  ],
] as const)('%s', (_, standing, expected) => {
  expect(withheldFor({ ...person, ...standing })).toBe(expected)
})
