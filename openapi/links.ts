import type { LinkObject, LinksObject } from 'openapi3-ts/oas31'

/*
 * What can be done next with what an operation answered, for people who browse the API and for
 * programs that walk it. A list may be empty and give nothing to follow, so lists lead only to what
 * no operation creates.
 */

type Source = {
  /** The operation whose answer is followed. */
  from: string
  /** Path parameters of the operations linked to, as runtime expressions (OpenAPI 3.1 §4.8.20.4). */
  parameters: Record<string, string>
  to: readonly string[]
}

const webhookOperations = [
  'getWebhook',
  'updateWebhook',
  'deleteWebhook',
  'testWebhook',
  'rotateWebhookSecret',
  'listDeliveries',
  'recoverDeliveries',
  'listRecoveries',
]
const deliveryOperations = ['getDelivery', 'getDeliveryEvent', 'resendDelivery']
const subscriberOperations = [
  'getSubscriber',
  'listSubscriberContacts',
  'updateSubscriber',
  'deleteSubscriber',
  'unsubscribeSubscriber',
  'listSubscriberTopics',
  'updateSubscriberTopics',
]
const memberOperations = ['updateMember', 'removeMember']
const operatorOperations = ['getOperatorAccount', 'updateOperatorAccount', 'listOperatorMembers']
const audienceOperations = ['getAudience', 'updateAudience', 'deleteAudience']
const segmentOperations = [
  'getSegment',
  'countSegment',
  'listSegmentContacts',
  'exportSegmentContacts',
  'updateSegment',
  'deleteSegment',
]
const topicOperations = ['getTopic', 'updateTopic', 'deleteTopic']
const domainOperations = ['getDomain', 'getDomainDeliverability', 'verifyDomain', 'rotateDomainKeys', 'deleteDomain']
const emailOperations = ['getEmail', 'updateEmail', 'cancelEmail', 'resendEmail']
const templateOperations = [
  'getTemplate',
  'updateTemplate',
  'publishTemplate',
  'listTemplateVersions',
  'renderTemplate',
  'deleteTemplate',
]
const campaignOperations = [
  'getCampaign',
  'updateCampaign',
  'sendCampaign',
  'pauseCampaign',
  'resumeCampaign',
  'cancelCampaign',
  'chooseCampaignWinner',
  'duplicateCampaign',
  'testCampaign',
  'renderCampaign',
  'listCampaignRecipients',
  'exportCampaignRecipients',
  'getCampaignStatistics',
  'deleteCampaign',
]
const apiKeyOperations = ['getApiKey', 'revokeApiKey', 'deleteApiKey']
const portalOperations = ['deletePortalSession']
const contactListOperations = ['addContact', 'addContactBatch', 'listContacts', 'exportContacts']
const contactOperations = ['getContact', 'updateContact', 'sendContactConfirmation', 'removeContact']

const own = '$response.body#/id'
const first = '$response.body#/data/0/id'
const contact = { audienceId: '$response.body#/audienceId', subscriberId: '$response.body#/subscriberId' }

const sources: readonly Source[] = [
  { from: 'createWebhook', parameters: { id: own }, to: webhookOperations },
  {
    from: 'listDeliveries',
    parameters: { id: '$request.path.id', deliveryId: first },
    to: deliveryOperations,
  },
  { from: 'resendDelivery', parameters: { id: '$request.path.id', deliveryId: own }, to: deliveryOperations },
  {
    from: 'recoverDeliveries',
    parameters: { id: '$request.path.id', recoveryId: own },
    to: ['getRecovery'],
  },
  { from: 'createPortalSession', parameters: { id: own }, to: portalOperations },
  { from: 'listEvents', parameters: { id: first }, to: ['getEvent'] },
  { from: 'createSubscriber', parameters: { id: own }, to: subscriberOperations },
  { from: 'listCapturedMessages', parameters: { id: first }, to: ['getCapturedMessage', 'deleteCapturedMessage'] },
  {
    from: 'getCapturedMessage',
    parameters: { id: '$request.path.id', index: '0' },
    to: ['getCapturedMessageAttachment'],
  },
  { from: 'listRequestLogs', parameters: { id: first }, to: ['getRequestLog'] },
  { from: 'listInboundMessages', parameters: { id: first }, to: ['getInboundMessage'] },
  { from: 'sendEmail', parameters: { id: own }, to: emailOperations },
  { from: 'getEmail', parameters: { id: '$request.path.id', index: '0' }, to: ['getEmailAttachment'] },
  {
    from: 'createSuppression',
    parameters: { address: '$response.body#/address' },
    to: ['getSuppression', 'deleteSuppression'],
  },
  { from: 'listSessions', parameters: { id: first }, to: ['endSession'] },
  { from: 'addPasskey', parameters: { id: own }, to: ['updatePasskey', 'removePasskey'] },
  { from: 'addIdentity', parameters: { id: own }, to: ['removeIdentity'] },
  { from: 'listOperatorAccounts', parameters: { id: first }, to: operatorOperations },
  { from: 'listMembers', parameters: { userId: '$response.body#/data/0/userId' }, to: memberOperations },
  { from: 'createInvitation', parameters: { id: own }, to: ['deleteInvitation'] },
  { from: 'createAudience', parameters: { id: own }, to: audienceOperations },
  { from: 'createAudience', parameters: { audienceId: own }, to: contactListOperations },
  { from: 'createImport', parameters: { id: own }, to: ['getImport', 'cancelImport', 'getImportFailedRows'] },
  {
    from: 'createContactProperty',
    parameters: { key: '$response.body#/key' },
    to: ['updateContactProperty', 'deleteContactProperty'],
  },
  { from: 'createSegment', parameters: { id: own }, to: segmentOperations },
  { from: 'createTopic', parameters: { id: own }, to: topicOperations },
  { from: 'createDomain', parameters: { id: own }, to: domainOperations },
  { from: 'createTemplate', parameters: { id: own }, to: templateOperations },
  { from: 'createCampaign', parameters: { id: own }, to: campaignOperations },
  { from: 'duplicateCampaign', parameters: { id: own }, to: campaignOperations },
  { from: 'createApiKey', parameters: { id: own }, to: apiKeyOperations },
  { from: 'addContact', parameters: contact, to: contactOperations },
  // Not to `deleteSubscriber`: it takes the contact away, which the links of the contact cannot tell.
  {
    from: 'addContact',
    parameters: { id: contact.subscriberId },
    to: ['getSubscriber', 'listSubscriberContacts', 'updateSubscriber'],
  },
]

function linkOf(operationId: string, parameters: Record<string, string>): LinkObject {
  const given = Object.entries(parameters).map(([name, expression]) => `\`${name}\` from \`${expression}\``)
  return { operationId, parameters, description: `Gives ${given.join(' and ')} to \`${operationId}\`.` }
}

/** The links of the answer of `operationId` to the operations that are there. */
export function linksOf(operationId: string, operationIds: ReadonlySet<string>): LinksObject {
  return Object.fromEntries(
    sources
      .filter((source) => source.from === operationId)
      .flatMap(({ parameters, to }) => to.map((target) => [target, linkOf(target, parameters)] as const))
      .filter(([target]) => operationIds.has(target)),
  )
}
