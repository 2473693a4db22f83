/** Lists that show an account what is its own, by operation. */
export const listsOfAnAccount = [
  'listWebhooks',
  'listPortalSessions',
  'listEvents',
  'listSubscribers',
  'listAudiences',
  'listSegments',
  'listTopics',
  'listDomains',
  'listTemplates',
  'listEmails',
  'listCampaigns',
  'listSuppressions',
  'listCapturedMessages',
  'listInboundMessages',
] as const

/** Operations whose parameters are made from something that stands in these lists. */
export const makersOfListed = [
  'getSegment',
  'getTopic',
  'getWebhook',
  'deletePortalSession',
  'getDomain',
  'getTemplate',
  'getEmail',
  'getCampaign',
  'deleteSuppression',
  'getCapturedMessage',
  'getInboundMessage',
] as const
