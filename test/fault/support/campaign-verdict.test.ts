import { expect, test } from 'vitest'
import { type CampaignEnd, type CampaignEvidence, judgeCampaigns } from './campaign-verdict.ts'
import { createLedger } from './ledger.ts'

const address = (n: number) => `p${n}@example.com`

/** Two people who got it, the second after a refusal, and one who unsubscribed before. */
function good(): CampaignEvidence {
  const campaign: CampaignEnd = {
    id: 'cmp_1',
    status: 'completed',
    people: [
      { subscriberId: 's1', address: address(1), fate: 'gets', outcome: 'handed_over' },
      { subscriberId: 's2', address: address(2), fate: 'may', outcome: null },
      { subscriberId: 's3', address: address(3), fate: 'nothing', outcome: 'unsubscribed' },
    ],
    shown: 3,
    statistics: {
      recipients: 3,
      waiting: 0,
      queued: 0,
      handedOver: 2,
      deferred: 0,
      failed: 0,
      skipped: { left: 0, unsubscribed: 1, suppressed: 0 },
      canceled: 0,
      emails: {
        sent: 2,
        delivered: 2,
        bounced: 0,
        complained: 0,
        opened: 0,
        opens: 0,
        clicked: 0,
        clicks: 0,
        unsubscribed: 0,
        undeliverable: 0,
      },
      hours: [],
      days: [],
      links: [],
      variants: [],
      providers: [],
    },
    recipients: [
      { subscriberId: 's1', status: 'handed_over', reason: null },
      { subscriberId: 's2', status: 'handed_over', reason: null },
      { subscriberId: 's3', status: 'skipped', reason: 'unsubscribed' },
    ],
    events: [
      { type: 'campaign.sent', recipients: { total: 3 } },
      { type: 'campaign.completed', recipients: { total: 3, sent: 2, failed: 1, deferred: 1, skipped: 1 } },
    ],
    deferred: { least: 1, most: 1 },
  }
  const sent = [1, 2].map((n) => ({ n, mark: address(n), messageId: `<${n}>` }))
  return {
    campaigns: [campaign],
    mail: {
      ledger: createLedger(),
      recipientsOf: () => [],
      emails: sent.map(({ mark, messageId }) => ({ mark, messageId, status: 'sent', hasJob: false })),
      recipients: sent.map(({ n, mark }) => {
        const refused = { deferred: n - 1, refused: n - 1 }
        return { mark, address: mark, status: 'accepted', resent: 0, ...refused, unknown: 0, wasPaused: false, lost: 0 }
      }),
      events: [
        ...sent.map(({ n, mark }) => ({ id: `evt_${n}`, type: 'email.sent', to: mark })),
        { id: 'evt_3', type: 'email.delivery_delayed', to: address(2) },
      ],
      arrivals: [1, 2, 3].map((n) => ({ path: '/1', eventId: `evt_${n}`, body: '', taken: true })),
      copies: sent.map(({ mark, messageId }) => ({ messageId, recipients: [mark] })),
    },
  }
}

/** Returns the verdict on good evidence after a change: the faults, one a line. */
function judged(change: (evidence: CampaignEvidence, campaign: CampaignEnd) => CampaignEvidence): string {
  const evidence = good()
  const [campaign] = evidence.campaigns
  if (campaign === undefined) throw new Error('there is no campaign')
  return judgeCampaigns(change(evidence, campaign)).join('\n')
}

const withCopies = (evidence: CampaignEvidence, copies: CampaignEvidence['mail']['copies']) => ({
  ...evidence,
  mail: { ...evidence.mail, copies },
})
const withCampaign = (evidence: CampaignEvidence, campaign: CampaignEnd, change: Partial<CampaignEnd>) => ({
  ...evidence,
  campaigns: [{ ...campaign, ...change }],
})

test('nothing is wrong where each got it as they should', () => {
  expect(judgeCampaigns(good())).toEqual([])
})

test('a verdict tells of who got nothing, who got it twice, and who should have got nothing', () => {
  expect(judged((evidence) => withCopies(evidence, evidence.mail.copies.slice(1)))).toContain(
    'p1@example.com got nothing',
  )
  const first = good().mail.copies.slice(0, 1)
  expect(judged((evidence) => withCopies(evidence, [...evidence.mail.copies, ...first]))).toContain('was sent 2 copies')
  const wrong = { messageId: '<3>', recipients: [address(3)] }
  expect(judged((evidence) => withCopies(evidence, [...evidence.mail.copies, wrong]))).toContain(
    'p3@example.com should get nothing, and got 1',
  )
})

test('a verdict tells of counts that are not what is listed, and that do not add up', () => {
  const said = judged((evidence, campaign) =>
    withCampaign(evidence, campaign, { statistics: { ...campaign.statistics, handedOver: 1 } }),
  )
  expect(said).toContain('counts 1 as handed over, and there are 2')
  expect(said).toContain('has 3 recipients, and its counts add up to 2')
  expect(judged((evidence, campaign) => withCampaign(evidence, campaign, { shown: 4 }))).toContain(
    'counts 4 as recipients that are shown, and there are 3',
  )
})

test('a verdict tells of a person whom a campaign ended otherwise for than it should', () => {
  const said = judged((evidence, campaign) =>
    withCampaign(evidence, campaign, {
      recipients: campaign.recipients.map((one) =>
        one.subscriberId === 's3' ? { ...one, reason: 'suppressed' } : one,
      ),
    }),
  )
  expect(said).toContain('p3@example.com is suppressed, and should be unsubscribed')
})

test('a verdict tells of events that are missing, twice or wrong, and of a campaign that has not ended', () => {
  for (const change of [
    (events: CampaignEnd['events']) => events.slice(0, 1),
    (events: CampaignEnd['events']) => [...events, ...events.slice(1)],
    () => [],
  ]) {
    const said = judged((evidence, campaign) => withCampaign(evidence, campaign, { events: change(campaign.events) }))
    expect(said).toContain('cmp_1 is completed, and told of by')
  }
  expect(judged((evidence, campaign) => withCampaign(evidence, campaign, { status: 'sending' }))).toContain(
    'cmp_1 is still sending',
  )
})

test('a verdict tells of those still tried who are counted otherwise than their history says', () => {
  const said = judged((evidence, campaign) => withCampaign(evidence, campaign, { deferred: { least: 2, most: 3 } }))
  expect(said).toBe('cmp_1 was told to have 1 deferred, and there were 2 to 3')
  const later = judged((evidence, campaign) =>
    withCampaign(evidence, campaign, { statistics: { ...campaign.statistics, deferred: 1 } }),
  )
  expect(later).toBe('cmp_1 counts 1 as deferred, and there are 0')
})

test('a verdict tells of a refusal that is not in the history of its email, and of an entry without a refusal', () => {
  const withSecond = (change: object) =>
    judged((evidence) => {
      const recipients = evidence.mail.recipients.map((one) => (one.deferred > 0 ? { ...one, ...change } : one))
      return { ...evidence, mail: { ...evidence.mail, recipients } }
    })
  expect(withSecond({ refused: 2 })).toBe(
    'p2@example.com was refused 2 times and sent 1 copies, and its history has 1 and 1',
  )
  expect(withSecond({ refused: 0 })).toBe('p2@example.com was refused 0 times, and its history has 1')
  expect(withSecond({ refused: 0, status: 'suppressed' })).toContain('was refused 0 times, and its history has 1')
})

test('a verdict does not miss who was refused and then unsubscribed, or whose campaign was canceled then', () => {
  for (const status of ['suppressed', 'canceled']) {
    const withheld = (n: number) => (evidence: CampaignEvidence, campaign: CampaignEnd) => {
      const { mail } = evidence
      const recipients = mail.recipients.map((one) => (one.address === address(n) ? { ...one, status } : one))
      const copies = mail.copies.filter((copy) => !copy.recipients.includes(address(n)))
      const people = campaign.people.map((one) => ({ ...one, fate: 'may' as const }))
      const { emails } = campaign.statistics
      const statistics = { ...campaign.statistics, emails: { ...emails, sent: 1 } }
      return { ...withCampaign(evidence, campaign, { people, statistics }), mail: { ...mail, recipients, copies } }
    }
    expect(judged(withheld(2))).toBe('')
    expect(judged(withheld(1))).toBe('p1@example.com is handed over, and got nothing')
  }
})
