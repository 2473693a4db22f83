import type { CampaignStatus } from '../../contract/campaign-resource.ts'
import { DomainError } from '../shared/errors.ts'

/** A transition of a campaign. The worker does `start`, `complete`, `stall` and `skip`, users do the others. */
export type Move = 'send' | 'pause' | 'resume' | 'cancel' | 'start' | 'complete' | 'stall' | 'skip'

/** Every legal move: from where to where. docs/architecture/campaign-states.md has the picture. */
export const moves = {
  send: { draft: 'scheduled' },
  start: { scheduled: 'sending' },
  skip: { scheduled: 'canceled' },
  pause: { sending: 'paused' },
  stall: { sending: 'paused' },
  resume: { paused: 'sending' },
  complete: { sending: 'completed' },
  cancel: { scheduled: 'canceled', sending: 'canceled', paused: 'canceled' },
} as const satisfies Record<Move, Partial<Record<CampaignStatus, CampaignStatus>>>

/** Returns the status after a move. Null: it is not legal. */
export function statusAfter(move: Move, status: CampaignStatus): CampaignStatus | null {
  const table: Partial<Record<CampaignStatus, CampaignStatus>> = moves[move]
  return table[status] ?? null
}

const advice: Record<CampaignStatus, string> = {
  draft: 'Send it with POST /v1/campaigns/:id/send first.',
  scheduled: 'It can be canceled until it starts sending.',
  sending: 'It can be paused or canceled.',
  paused: 'It can be resumed or canceled.',
  completed: 'It has ended: POST /v1/campaigns/:id/duplicate makes a draft of it.',
  canceled: 'It has ended: POST /v1/campaigns/:id/duplicate makes a draft of it.',
}

/** Returns the error for something that the state of a campaign does not allow. `what`: such as `sent`. */
export function wrongState(id: string, status: CampaignStatus, what: string): DomainError {
  return new DomainError('campaign_state', `The campaign "${id}" is ${status} and cannot be ${what}. ${advice[status]}`)
}
