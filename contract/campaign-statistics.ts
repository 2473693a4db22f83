import { z } from 'zod'
import { campaignLimits } from './campaign-resource.ts'
import { timestamp } from './fields.ts'

const count = (description: string) => z.int().min(0).meta({ description })

const emailCounts = {
  sent: count('Recipients whose message a mail server has accepted.'),
  delivered: count('Recipients whose message has reached their own mail server.'),
  bounced: count('Recipients whose message bounced.'),
  complained: count('Recipients who reported the message as spam.'),
  opened: count('Recipients who opened the message.'),
  opens: count('All opens that look like those of people.'),
  clicked: count('Recipients who clicked a link.'),
  clicks: count('All clicks that look like those of people.'),
  unsubscribed: count('Recipients who unsubscribed with the link or the button of the message.'),
  undeliverable: count('Recipients whom the service gave up on after it had tried: `email.failed`.'),
}

const countsExample = {
  sent: 1190,
  delivered: 1180,
  bounced: 10,
  complained: 1,
  opened: 400,
  opens: 530,
  clicked: 80,
  clicks: 95,
  unsubscribed: 3,
  undeliverable: 2,
}

const link = z
  .object({
    link: z.string().nullable().meta({
      description: 'As it was written, with its Liquid. Null: all links that are not in the list.',
    }),
    clicked: count('Recipients who clicked it.'),
    clicks: count('All clicks that look like those of people.'),
  })
  .meta({
    id: 'CampaignLinkStatistics',
    description: 'Clicks on a link of a campaign.',
    example: { link: 'https://shop.example/spring', clicked: 60, clicks: 71 },
  })

const variant = z
  .object({
    name: z.string(),
    people: count('Recipients who get it in the test.'),
    sent: emailCounts.sent,
    delivered: emailCounts.delivered,
    opened: count('Recipients who opened it, without machines.'),
    clicked: count('Recipients who clicked a link in it, without machines.'),
    unsubscribed: emailCounts.unsubscribed,
  })
  .meta({
    id: 'CampaignVariantStatistics',
    description: 'How a variant did in the A/B test. What the winner did after that is in the totals alone.',
    example: { name: 'A', people: 120, sent: 119, delivered: 118, opened: 40, clicked: 8, unsubscribed: 0 },
  })

const provider = z
  .object({
    kind: z.enum(['provider', 'domain', 'other']).meta({
      description:
        '`provider`: a well-known mailbox provider, with all its domains. `domain`: a domain that belongs to none. `other`: all that are not in the list.',
    }),
    name: z.string().nullable().meta({
      description: 'Of `provider` as people know it, such as `Gmail`; of `domain` the domain. Null: `other`.',
    }),
    ...emailCounts,
  })
  .meta({
    id: 'CampaignProviderStatistics',
    description: 'What became of the emails to one mailbox provider, by the domains of the addresses.',
    example: { kind: 'provider' as const, name: 'Gmail', ...countsExample },
  })

export const campaignStatistics = z
  .object({
    recipients: count('People it goes to.'),
    waiting: count('Those without an email yet.'),
    queued: count('Those whose email waits for its first attempt.'),
    handedOver: count('Those to whom the first attempt was made, whatever came of it.'),
    deferred: count('Those of `handedOver` who are still tried: a mail server refused the message for now.'),
    failed: count('Those for whom the content could not be rendered.'),
    skipped: z.object({
      left: count('Not in the audience any more when it was their turn.'),
      unsubscribed: count('Unsubscribed when it was their turn, or not confirmed, or without the topic.'),
      suppressed: count('On the suppression list when it was their turn.'),
    }),
    canceled: count('Those who got nothing because the campaign was canceled before.'),
    emails: z.object(emailCounts).meta({ description: 'What became of the emails, counted as in statistics.' }),
    hours: z
      .array(z.object({ start: timestamp, ...emailCounts }))
      .meta({ description: 'The same by hour, of the last 31 days: hours in which something happened.' }),
    days: z
      .array(z.object({ start: timestamp, ...emailCounts }))
      .meta({ description: 'The same by day, in UTC: days in which something happened.' }),
    links: z.array(link).meta({
      description: `Clicks by link, in the order of the content: the first ${campaignLimits.links} links of the HTML, then all others together if one of them was clicked. Empty without \`trackClicks\`, and before the campaign starts.`,
    }),
    variants: z.array(variant).meta({
      description: 'The variants of its A/B test, in their order. Empty: it has none.',
    }),
    providers: z.array(provider).meta({
      description: `What became of the emails by mailbox provider: the ${campaignLimits.providers} with the most emails, then all others together.`,
    }),
  })
  .meta({
    id: 'CampaignStatistics',
    description:
      'How far a campaign is. `recipients` is the sum of `waiting`, `queued`, `handedOver`, `failed`, `skipped` and `canceled`; `deferred` is a part of `handedOver`.',
    example: {
      recipients: 1200,
      waiting: 0,
      queued: 0,
      handedOver: 1197,
      deferred: 0,
      failed: 0,
      skipped: { left: 1, unsubscribed: 2, suppressed: 0 },
      canceled: 0,
      emails: countsExample,
      hours: [{ start: '2026-03-01T09:00:00.000Z', ...countsExample }],
      days: [{ start: '2026-03-01T00:00:00.000Z', ...countsExample }],
      links: [{ link: 'https://shop.example/spring', clicked: 60, clicks: 71 }],
      variants: [],
      providers: [{ kind: 'provider', name: 'Gmail', ...countsExample }],
    },
  })

export type CampaignStatistics = z.infer<typeof campaignStatistics>
