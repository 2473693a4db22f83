import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { variantName } from './campaign-ab-test.ts'
import {
  campaign,
  campaignDetails,
  campaignLimits,
  campaignRecipient,
  campaignRecipientStatus,
  campaignStatus,
  createCampaign,
  longCampaignFields,
  renderCampaign,
  updateCampaign,
} from './campaign-resource.ts'
import { campaignStatistics } from './campaign-statistics.ts'
import { localTime, timezone } from './campaign-times.ts'
import { list, mailbox, timeInput } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { templatePreview } from './templates.ts'

const c = initContract()

const idParam = z.object({ id: idSchema('campaign', 'The campaign.') })
const noBody = z.strictObject({}).optional()

const reading = { tag: 'Campaigns', permission: 'campaigns:read' } as const
const writing = { tag: 'Campaigns', permission: 'campaigns:write', hasBody: true } as const
const sending = {
  tag: 'Campaigns',
  permission: 'campaigns:send',
  hasBody: true,
  idempotency: 'with-work',
} as const

const testCampaign = z
  .strictObject({
    to: list(mailbox, {
      min: 1,
      max: campaignLimits.testAddresses,
      fault: `must be at most ${campaignLimits.testAddresses} addresses`,
    }).meta({ description: 'Who gets it.' }),
    subscriberId: idSchema(
      'subscriber',
      'The person whose name, address and properties stand in the message. Needs `contacts:read` too. Default: those of `to`, with the fallbacks of properties.',
    ).optional(),
    variant: variantName
      .meta({ description: 'The variant of its A/B test that is sent. Default: the message of the campaign.' })
      .optional(),
  })
  .meta({ id: 'TestCampaign', description: 'Who gets the test.', example: { to: ['delivered@simulator.test'] } })

const sendCampaign = z
  .strictObject({
    scheduledAt: timeInput
      .optional()
      .meta({ description: `When to start, up to ${campaignLimits.scheduleDays} days ahead. Default: now.` }),
    localTime: localTime.optional().meta({
      description: `The time at which each person gets it, in the zone that their contact property \`timezone\` names, up to ${campaignLimits.scheduleDays} days ahead; in place of \`scheduledAt\`. When clocks leave it out, it is the first moment after that; when it comes twice, the first of both. For whom it has passed, it is now. The account must have a property \`timezone\` with the type \`string\`.`,
    }),
    fallbackTimezone: timezone.optional().meta({
      description:
        'With `localTime`: the zone of those who have none, or one that is not known. Default: the fallback of the property `timezone`, or else `UTC`.',
    }),
  })
  .meta({ id: 'SendCampaign', description: 'When to send.', example: {} })

const chooseWinner = z
  .strictObject({ variant: variantName.meta({ description: 'The name of the variant.' }) })
  .meta({ id: 'ChooseWinner', description: 'The variant that the rest gets.', example: { variant: 'B' } })

export type SendCampaign = z.infer<typeof sendCampaign>
export type TestCampaign = z.infer<typeof testCampaign>

export const campaigns = c.router({
  create: {
    method: 'POST',
    path: '/v1/campaigns',
    summary: 'Create a campaign',
    description: 'Adds a draft. Nothing is sent before `POST …/send`.',
    body: createCampaign,
    ...outcome(
      {
        ...writing,
        operationId: 'createCampaign',
        idempotency: 'with-work',
        takesAttachments: true,
        longFields: longCampaignFields,
        errors: ['rule_violation', 'audience_not_found', 'topic_not_found', 'segment_invalid', 'template_not_found'],
      },
      { 201: campaignDetails },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/campaigns',
    summary: 'List campaigns',
    description: 'Newest first, those of the mode of the key.',
    query: z.strictObject({ ...pageQuery, status: campaignStatus.optional() }),
    ...outcome({ ...reading, operationId: 'listCampaigns' }, { 200: pageOf(campaign, 'CampaignPage') }),
  },
  get: {
    method: 'GET',
    path: '/v1/campaigns/:id',
    summary: 'Get a campaign',
    description: 'One campaign with its content.',
    pathParams: idParam,
    ...outcome({ ...reading, operationId: 'getCampaign', errors: ['not_found'] }, { 200: campaignDetails }),
  },
  update: {
    method: 'PATCH',
    path: '/v1/campaigns/:id',
    summary: 'Update a campaign',
    description: 'Changes the fields given, of a draft. `archive` alone may be changed in any state.',
    pathParams: idParam,
    body: updateCampaign,
    ...outcome(
      {
        ...writing,
        operationId: 'updateCampaign',
        takesAttachments: true,
        longFields: longCampaignFields,
        errors: [
          'not_found',
          'rule_violation',
          'audience_not_found',
          'topic_not_found',
          'segment_invalid',
          'template_not_found',
          'campaign_state',
        ],
      },
      { 200: campaignDetails },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/campaigns/:id',
    summary: 'Delete a campaign',
    description:
      'Deletes one that is a draft, completed or canceled, with the list of its recipients. Its emails stay, with their statistics.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteCampaign',
        tag: 'Campaigns',
        permission: 'campaigns:write',
        errors: ['not_found', 'campaign_state'],
      },
      { 204: c.noBody() },
    ),
  },
  send: {
    method: 'POST',
    path: '/v1/campaigns/:id/send',
    summary: 'Send a campaign',
    description:
      'Starts a draft, now, at `scheduledAt`, or for each person at a local time. It goes to those who are in the audience, in one of its segments if it has some, and active when it starts. The published version of its template is copied now. A test key sends to nobody: each email is checked, and gets the status `validated`; recipients of the simulator are simulated.',
    pathParams: idParam,
    body: sendCampaign.optional(),
    ...outcome(
      {
        ...sending,
        operationId: 'sendCampaign',
        errors: [
          'not_found',
          'rule_violation',
          'template_fault',
          'audience_not_found',
          'topic_not_found',
          'segment_invalid',
          'template_not_found',
          'domain_not_verified',
          'public_url_needed',
          'campaign_state',
          'too_many_campaigns',
        ],
      },
      { 202: campaign },
    ),
  },
  pause: {
    method: 'POST',
    path: '/v1/campaigns/:id/pause',
    summary: 'Pause a campaign',
    description:
      'Nothing more leaves but what is on its way to a mail server. Emails that were queued are taken back, and made again after `resume`.',
    pathParams: idParam,
    body: noBody,
    ...outcome(
      { ...sending, operationId: 'pauseCampaign', errors: ['not_found', 'campaign_state'] },
      { 200: campaign },
    ),
  },
  resume: {
    method: 'POST',
    path: '/v1/campaigns/:id/resume',
    summary: 'Resume a campaign',
    description: 'Goes on with one that is paused.',
    pathParams: idParam,
    body: noBody,
    ...outcome(
      { ...sending, operationId: 'resumeCampaign', errors: ['not_found', 'campaign_state'] },
      { 200: campaign },
    ),
  },
  cancel: {
    method: 'POST',
    path: '/v1/campaigns/:id/cancel',
    summary: 'Cancel a campaign',
    description:
      'Ends one that is scheduled, sending or paused, for good. Nothing more leaves but what is on its way to a mail server; queued emails become `canceled`.',
    pathParams: idParam,
    body: noBody,
    ...outcome(
      { ...sending, operationId: 'cancelCampaign', errors: ['not_found', 'campaign_state'] },
      { 200: campaign },
    ),
  },
  winner: {
    method: 'POST',
    path: '/v1/campaigns/:id/winner',
    summary: 'Choose the winner of an A/B test',
    description:
      'Sends a variant to the rest of the people, from the moment on when everybody in the test was written to. With `hours`, it need not be waited for. Choosing the same variant again changes nothing.',
    pathParams: idParam,
    body: chooseWinner,
    ...outcome(
      {
        ...sending,
        operationId: 'chooseCampaignWinner',
        errors: ['not_found', 'rule_violation', 'campaign_state'],
      },
      { 200: campaign },
    ),
  },
  duplicate: {
    method: 'POST',
    path: '/v1/campaigns/:id/duplicate',
    summary: 'Duplicate a campaign',
    description: 'Adds a draft with the same fields, whatever the state of the campaign.',
    pathParams: idParam,
    body: noBody,
    ...outcome(
      { ...writing, operationId: 'duplicateCampaign', idempotency: 'with-work', errors: ['not_found'] },
      { 201: campaignDetails },
    ),
  },
  test: {
    method: 'POST',
    path: '/v1/campaigns/:id/test',
    summary: 'Send a test of a campaign',
    description:
      'Sends the message to some addresses, an email to each, as it is now. It is not counted for the campaign. A link to unsubscribe is in it, and works for the address that gets the test.',
    pathParams: idParam,
    body: testCampaign,
    ...outcome(
      {
        ...sending,
        operationId: 'testCampaign',
        errors: [
          'not_found',
          'rule_violation',
          'audience_not_found',
          'topic_not_found',
          'segment_invalid',
          'template_not_found',
          'domain_not_verified',
          'public_url_needed',
        ],
      },
      {
        202: z
          .object({ emailIds: z.array(idSchema('email', 'The email.')).meta({ description: 'In the order of `to`.' }) })
          .meta({
            id: 'CampaignTest',
            description: 'The emails of the test.',
            example: { emailIds: [exampleId('email')] },
          }),
      },
    ),
  },
  render: {
    method: 'POST',
    path: '/v1/campaigns/:id/render',
    summary: 'Render a campaign',
    description:
      'Renders the message for one person, and says what is not good about it. Content in the request takes the place of that of the campaign. Stores and sends nothing; `unsubscribeUrl`, `preferencesUrl` and `webUrl` are samples, which lead to `example.com`.',
    pathParams: idParam,
    body: renderCampaign,
    ...outcome(
      {
        ...reading,
        operationId: 'renderCampaign',
        hasBody: true,
        takesAttachments: true,
        longFields: longCampaignFields,
        idempotency: 'after-work',
        errors: ['not_found', 'rule_violation', 'template_not_found'],
      },
      { 200: templatePreview },
    ),
  },
  recipients: {
    method: 'GET',
    path: '/v1/campaigns/:id/recipients',
    summary: 'List the recipients of a campaign',
    description:
      'Newest subscribers first. With `status` a page can have fewer than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    pathParams: idParam,
    query: z.strictObject({ ...pageQuery, status: campaignRecipientStatus.optional() }),
    ...outcome(
      { ...reading, operationId: 'listCampaignRecipients', errors: ['not_found'] },
      { 200: pageOf(campaignRecipient, 'CampaignRecipientPage') },
    ),
  },
  exportRecipients: {
    method: 'GET',
    path: '/v1/campaigns/:id/recipients/export',
    summary: 'Export the recipients of a campaign',
    description:
      'CSV in UTF-8, oldest subscribers first: `email`, `first_name`, `last_name`, `recipient_status`, `reason`, `email_status`, `email_id`, `variant`, then the declared properties by key. Name, address and properties are those of now, and empty where the person is deleted. Each row is as it is when it is read. A cell that a spreadsheet could take for a formula begins with an apostrophe.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'exportCampaignRecipients',
        tag: 'Campaigns',
        permission: 'contacts:read',
        errors: ['not_found'],
      },
      {
        200: c.otherResponse({
          contentType: 'text/csv',
          body: z.string().meta({
            description: 'CSV with a head.',
            example:
              'email,first_name,last_name,recipient_status,reason,email_status,email_id,variant,plan\r\nada@example.com,Ada,Lovelace,handed_over,,delivered,email_01jqz4x7m8e5v9t2k6r3w0y1ab,,pro\r\n',
          }),
        }),
      },
    ),
  },
  statistics: {
    method: 'GET',
    path: '/v1/campaigns/:id/statistics',
    summary: 'Get the statistics of a campaign',
    description:
      'How many are how far, and what became of the emails: in all, by hour and day, by link, by variant, and by mailbox provider.',
    pathParams: idParam,
    ...outcome(
      { ...reading, operationId: 'getCampaignStatistics', errors: ['not_found'] },
      { 200: campaignStatistics },
    ),
  },
})
