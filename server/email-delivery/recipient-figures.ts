import type { NewEvent } from '../outbox/append.ts'
import type { EmailFigure } from '../statistics/figures.ts'
import type { RecipientState, Transition } from './recipient-transitions.ts'

/**
 * Returns the figures that a transition adds one to. They follow from its events, so that statistics say the same as
 * the events of an account.
 */
export function figuresOf(before: RecipientState, { state, events }: Transition): EmailFigure[] {
  return events.flatMap((event) => figuresOfEvent(event, before, state))
}

function figuresOfEvent(event: NewEvent, before: RecipientState, after: RecipientState): EmailFigure[] {
  switch (event.type) {
    case 'email.sent':
      return ['sent']
    case 'email.delivered':
      return ['delivered']
    case 'email.bounced': {
      const hard: EmailFigure[] = event.data.bounceType === 'hard' ? ['hard_bounced'] : []
      return after.acceptedAt === null ? ['bounced', 'rejected', ...hard] : ['bounced', ...hard]
    }
    case 'email.complained':
      return ['complained']
    case 'email.failed':
      return [after.status === 'suppressed' ? 'suppressed' : 'failed']
    case 'email.delivery_delayed':
      return ['delayed']
    case 'email.opened':
      return [
        ...(before.openedAt === null ? (['opened'] as const) : []),
        event.data.automated ? 'automated_opens' : 'opens',
      ]
    case 'email.clicked':
      return [
        ...(before.clickedAt === null ? (['clicked'] as const) : []),
        event.data.automated ? 'automated_clicks' : 'clicks',
      ]
    default:
      return []
  }
}
