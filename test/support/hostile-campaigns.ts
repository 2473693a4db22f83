import { vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { patienceMs } from './patience.ts'
import type { TestService } from './service.ts'

type Options = {
  /** An audience of somebody who is suppressed. */
  audienceId: string
  /** The text for every field. */
  script: string
  mildHtml: string
  hostileHtml: string
}

/**
 * Ids of a template and of campaigns: a draft, one that was sent, and one that the service has paused. The hostile ones
 * have the hostile HTML.
 */
type Written = Record<'template' | 'hostileTemplate' | 'draft' | 'hostileDraft' | 'sent' | 'paused', string>

/** Writes a template and campaigns with script in every field that their screens show. */
export async function writeHostileCampaigns(
  { client, database }: TestService,
  { audienceId, script, mildHtml, hostileHtml }: Options,
): Promise<Written> {
  const quoted = `"${script.replaceAll('"', "'")}"`
  const writeTemplate = async (html: string, preheader: string) => {
    const body = {
      name: script,
      subject: script,
      preheader,
      html,
      text: script,
      variables: [{ name: 'firstName', type: 'string' as const, fallback: script }],
    }
    return (await client.succeed(contract.templates.create, { body })).id
  }
  const write = async (html: string, preheader: string) => {
    const body = {
      name: script,
      audienceId,
      from: `${quoted} <hello@shop.test>`,
      replyTo: [`${quoted} <help@shop.test>`],
      subject: script,
      content: { preheader, html, text: script },
      tags: ['<img src=x onerror=alert()>'],
      metadata: { '<b>': script },
    }
    return (await client.succeed(contract.campaigns.create, { body })).id
  }
  // The preheader is a part of the rendered HTML, and the browser tells of each script that it stops.
  const template = await writeTemplate(mildHtml, 'Hello')
  await client.succeed(contract.templates.publish, { params: { id: template }, body: {} })
  const hostileTemplate = await writeTemplate(hostileHtml, script)
  const draft = await write(mildHtml, 'Hello')
  const hostileDraft = await write(hostileHtml, script)
  const sent = await write(mildHtml, script)
  const paused = await write(mildHtml, script)
  await client.succeed(contract.contacts.add, { params: { audienceId }, body: { email: 'delivered@simulator.test' } })
  await client.succeed(contract.campaigns.send, { params: { id: sent }, body: {} })
  const isOver = async () =>
    (await client.succeed(contract.campaigns.get, { params: { id: sent } })).status === 'completed'
  await vi.waitUntil(isOver, { timeout: patienceMs })
  // Reasons have the words of faults in them, which may hold what was written.
  const reason = { status: 'paused', status_reason: script, started_at: new Date(), recipient_count: 2 } as const
  await database.db.updateTable('campaigns').set(reason).where('id', '=', paused).execute()
  return { template, hostileTemplate, draft, hostileDraft, sent, paused }
}
