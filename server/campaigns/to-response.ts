import type { Campaign, CampaignDetails, CampaignRecipient } from '../../contract/campaign-resource.ts'
import type { CampaignRow, CampaignSummary, RecipientRow } from './queries.ts'

export function toCampaign(row: CampaignSummary): Campaign {
  return {
    id: row.id,
    mode: row.mode,
    status: row.status,
    statusReason: row.status_reason,
    name: row.name,
    audienceId: row.audience_id,
    segmentIds: row.segment_ids,
    topicId: row.topic_id,
    from: row.sender,
    replyTo: row.reply_to,
    subject: row.subject,
    templateId: row.template_id,
    templateVersion: row.template_version,
    trackOpens: row.track_opens,
    trackClicks: row.track_clicks,
    tags: row.tags,
    metadata: row.metadata,
    throttle: row.throttle,
    lateStart: row.late_start,
    recipients: row.recipient_count,
    scheduledAt: row.scheduled_at?.toISOString() ?? null,
    localTime: row.local_time,
    fallbackTimezone: row.fallback_timezone,
    waitingFor: waitingFor(row),
    startedAt: row.started_at?.toISOString() ?? null,
    endedAt: row.ended_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}

function waitingFor({ status, waiting_for: reason, waiting_until: until }: CampaignSummary): Campaign['waitingFor'] {
  return status === 'sending' && reason !== null && until !== null ? { reason, until: until.toISOString() } : null
}

export function toDetails(row: CampaignRow): CampaignDetails {
  const { preheader, html, mjml, text, variables } = row
  return { ...toCampaign(row), content: { preheader, html, mjml, text }, variables }
}

export function toRecipient(row: RecipientRow): CampaignRecipient {
  return {
    subscriberId: row.subscriber_id,
    email: row.email,
    status: row.status,
    reason: row.reason,
    sendAt: row.send_at?.toISOString() ?? null,
    emailId: row.email_id,
    emailStatus: row.email_status,
  }
}
