import type { ConfirmationMailer } from '../../server/audiences/confirmation.ts'

/** For tests without an audience that asks people to confirm: what would write emails fails. */
export const noConfirmations: ConfirmationMailer = {
  judge: () => Promise.reject(new Error('this test has no emails to confirm')),
  ask: () => Promise.reject(new Error('this test has no emails to confirm')),
}
