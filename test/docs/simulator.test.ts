import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { simulatorDomain, simulatorStories } from '../../contract/simulator.ts'
import { transition } from '../../server/email-delivery/recipient-transitions.ts'
import { play } from '../../server/email-delivery/simulator.ts'
import { newId } from '../../server/shared/ids.ts'
import { begunRecipient } from '../support/emails.ts'
import { sectionOfPages } from './document.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
/** The events of a recipient's story, in order. */
function eventsOf(address: string): string[] {
  const emailId = newId('email', at)
  const recipient = { emailId, address, domain: simulatorDomain, subject: '' }
  let state = begunRecipient(at)
  return play({ emailId, position: 0, address }, at).flatMap((fact) => {
    const next = transition(recipient, state, fact, 0)
    if (next === null) throw new Error(`${fact.kind} changes nothing`)
    state = next.state
    expect(next.suppress).toBeNull()
    return next.events.map(({ type }) => `\`${type}\``)
  })
}

test('the table of the simulator tells every story, and what really happens', () => {
  const rows = [...sectionOfPages('The simulator').matchAll(/^\| `(.+)@simulator\.test` \| (.+) \| (.+) \|$/gm)]
  const told = rows.map(([, name = '', meaning, events]) => ({ name, meaning, events }))
  const played = Object.entries(simulatorStories).map(([name, meaning]) => ({
    name,
    meaning,
    events: eventsOf(`${name}+anything@simulator.test`).join(', '),
  }))
  expect(told).toEqual(played)
})

test('the documentation of the API tells every story too', () => {
  for (const [name, meaning] of Object.entries(simulatorStories)) {
    expect(contract.emails.send.description).toContain(`- \`${name}@simulator.test\`: ${meaning}`)
  }
})
