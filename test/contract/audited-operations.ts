import { expect } from 'vitest'
import type { AuditAction } from '../../contract/audit-actions.ts'
import type { TestService } from '../support/service.ts'

/** The action that each operation writes into the audit log, or its actions. A new operation is judged here or below. */
export const auditedOperations: Record<string, readonly [AuditAction, ...AuditAction[]]> = {
  createWebhook: ['webhook.created'],
  updateWebhook: ['webhook.updated'],
  deleteWebhook: ['webhook.deleted'],
  rotateWebhookSecret: ['webhook.secret_rotated'],
  recoverDeliveries: ['webhook.recovery_started'],
  deleteSubscriber: ['subscriber.deleted'],
  deleteAudience: ['audience.deleted'],
  removeContact: ['contact.deleted'],
  deleteContactProperty: ['contact_property.deleted'],
  deleteSegment: ['segment.deleted'],
  deleteTopic: ['topic.deleted'],
  createImport: ['import.created'],
  cancelImport: ['import.canceled'],
  createDomain: ['domain.created'],
  deleteDomain: ['domain.deleted'],
  rotateDomainKeys: ['domain.keys_rotated'],
  deleteTemplate: ['template.deleted'],
  publishTemplate: ['template.published'],
  sendCampaign: ['campaign.sent', 'campaign.scheduled'],
  pauseCampaign: ['campaign.paused'],
  resumeCampaign: ['campaign.resumed'],
  cancelCampaign: ['campaign.canceled'],
  chooseCampaignWinner: ['campaign.winner_chosen'],
  deleteCampaign: ['campaign.deleted'],
  deleteSuppression: ['suppression.deleted'],
  createApiKey: ['api_key.created'],
  revokeApiKey: ['api_key.revoked'],
  deleteApiKey: ['api_key.deleted'],
  createSession: ['session.signed_in', 'totp.recovery_code_used'],
  signInWithPasskey: ['session.signed_in', 'passkey.refused'],
  signInWithProvider: ['session.signed_in'],
  deleteSession: ['session.signed_out'],
  endSession: ['session.ended'],
  endOtherSessions: ['session.ended'],
  acceptLink: ['member.joined', 'password.changed'],
  updateUser: ['user.renamed', 'password.changed'],
  confirmTotp: ['totp.enabled'],
  removeTotp: ['totp.disabled'],
  addPasskey: ['passkey.added'],
  updatePasskey: ['passkey.renamed'],
  removePasskey: ['passkey.removed'],
  addIdentity: ['identity.linked'],
  removeIdentity: ['identity.unlinked'],
  updateMember: ['member.role_changed'],
  removeMember: ['member.removed'],
  createInvitation: ['member.invited'],
  deleteInvitation: ['invitation.deleted'],
  updateOperatorAccount: ['account.plan_changed'],
}

/** The actions of the command line. */
export const ofTheCommandLine: readonly AuditAction[] = [
  'user.operator_added',
  'user.operator_removed',
  'password.reset_link_created',
]

const changesNothing = 'It changes nothing.'
const isSeenInEvents = 'It takes nothing away, there may be very many, and an event tells each.'
const isSeenInObject = 'It takes nothing away, and the object shows when it was made or changed.'
const isOneEmail = 'There may be very many, and each is listed with its attempts or its state.'
const isCaptured = 'What is captured was never sent.'
const beginsOnly = 'It begins what another operation ends, which has an entry.'

/** The operations that write nothing into the audit log, and why. */
export const unauditedOperations: Record<string, string> = {
  testWebhook: 'It sends a sample, which is listed with the deliveries.',
  resendDelivery: 'It is one delivery, which is listed with its attempts.',
  createPortalSession: 'Each visit of a customer makes one, and the list has them.',
  deletePortalSession: 'Each visit of a customer ends so.',
  openPortalSession: 'The customer opens what the key has made.',
  createSubscriber: isSeenInEvents,
  updateSubscriber: 'An event tells it. It has the entry `suppression.deleted` when it lifts an unsubscription.',
  unsubscribeSubscriber: isSeenInEvents,
  updateSubscriberTopics: isSeenInEvents,
  addContact: isSeenInEvents,
  addContactBatch: isSeenInEvents,
  updateContact: isSeenInEvents,
  sendContactConfirmation: isOneEmail,
  createAudience: isSeenInObject,
  updateAudience: isSeenInObject,
  createContactProperty: isSeenInObject,
  updateContactProperty: isSeenInObject,
  createSegment: isSeenInObject,
  updateSegment: isSeenInObject,
  previewSegment: changesNothing,
  createTopic: isSeenInObject,
  updateTopic: isSeenInObject,
  verifyDomain: 'It looks at the DNS, as the service does by itself.',
  sendEmail: isOneEmail,
  sendEmailBatch: isOneEmail,
  updateEmail: isOneEmail,
  resendEmail: isOneEmail,
  cancelEmail: isOneEmail,
  createTemplate: 'It is a draft: nobody gets it before it is published.',
  updateTemplate: 'It is a draft: nobody gets it before it is published.',
  renderTemplate: changesNothing,
  createCampaign: 'It is a draft: nobody gets it before it is sent.',
  updateCampaign: 'It is a draft: nobody gets it before it is sent.',
  duplicateCampaign: 'It is a draft: nobody gets it before it is sent.',
  testCampaign: isOneEmail,
  renderCampaign: changesNothing,
  createSuppression: isSeenInObject,
  deleteCapturedMessage: isCaptured,
  deleteCapturedMessages: isCaptured,
  updateBrand: 'It is seen at once where it is used, and changed back as fast.',
  requestPasswordReset: beginsOnly,
  lookUpLink: changesNothing,
  createTotp: beginsOnly,
  createPasskeyChallenge: beginsOnly,
  createPasskeyOptions: beginsOnly,
  beginProviderSignIn: beginsOnly,
  beginIdentity: beginsOnly,
}

/** Returns the expected actions of an operation that succeeds, for a comparison: one action of its own, or none. */
export function writtenAsWanted(operationId: string): unknown[] {
  const wanted = auditedOperations[operationId]
  return wanted === undefined ? [] : [expect.toBeOneOf([...wanted])]
}

/** Returns what `work` returns, and the actions that were written meanwhile. */
export async function actionsWrittenBy<T>(
  { database: { db } }: Pick<TestService, 'database'>,
  work: () => Promise<T>,
): Promise<[T, AuditAction[]]> {
  const actions = async () => {
    const rows = await db.selectFrom('audit_log').select('action').orderBy('id').execute()
    return rows.map(({ action }) => action)
  }
  const before = await actions()
  const result = await work()
  return [result, (await actions()).slice(before.length)]
}
