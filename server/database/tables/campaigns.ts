import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { CampaignRecipientStatus, CampaignStatus } from '../../../contract/campaign-resource.ts'
import type { SendWindow } from '../../../contract/campaign-times.ts'
import type { Mode } from '../../../contract/mode.ts'
import type { SegmentCondition } from '../../../contract/segment-conditions.ts'

/** A segment as it was when the list of recipients was begun. */
export type ListedSegment = { id: string; name: string; conditions: SegmentCondition }

/** Values for the content of a campaign, the same for all people. */
export type Constants = Record<string, unknown>

/** An A/B test. `hours`: from its last email to the choice of the winner; null: it is chosen by hand. */
export type AbTest = {
  /** In percent. */
  share: number
  winnerBy: 'opens' | 'clicks' | 'manual'
  hours: number | null
  /** `subject`: null: that of the campaign. Content stands in `campaign_variants`. */
  variants: { name: string; subject: string | null }[]
}

export type CampaignsTable = {
  account_id: string
  id: string
  mode: Mode
  status: CampaignStatus
  /** Why the service paused or canceled it, or why its turns fail. Null: there is nothing to tell. */
  status_reason: string | null
  name: string
  audience_id: string
  /** It may be deleted. Null: the campaign is about none. */
  topic_id: Generated<string | null>
  /** The From header, as given. */
  sender: string
  reply_to: string[]
  /** It goes to the people of these segments, which may be deleted. Empty: to the whole audience. */
  segment_ids: Generated<string[]>
  /** It may be deleted. Null: the content is the campaign's own. */
  template_id: string | null
  /** The version that was copied. Null: the campaign has no template, or was not sent yet. */
  template_version: number | null
  /** False: `subject` is that of the template. */
  has_own_subject: Generated<boolean>
  /** Values for the content, as given. */
  variables: ColumnType<Constants, string | undefined, string>
  /** The same with the fallbacks of the content, when the campaign was sent; of a draft, these fallbacks. Null: none. */
  constants: ColumnType<Constants | null, string | null | undefined, string | null>
  subject: string
  preheader: string | null
  /** As it is written, or as the MJML was compiled. Null: there is none, or the MJML has faults. */
  html: string | null
  mjml: Generated<string | null>
  text: string | null
  track_opens: boolean
  track_clicks: boolean
  tags: string[]
  metadata: JSONColumnType<Record<string, string>>
  /** Messages in any 60 minutes. Null: no limit. */
  throttle: number | null
  /** The hours in which it sends. Null: always. */
  send_window: ColumnType<SendWindow | null, string | null | undefined, string | null>
  late_start: 'send' | 'skip'
  /** Whether everybody may read it on the web, once it has started. */
  archive: Generated<'none' | 'public'>
  /** Null: there is one message. */
  ab_test: ColumnType<AbTest | null, string | null | undefined, string | null>
  /** People in the test, by variant. Null: its recipients were not listed. */
  ab_people: Generated<number[] | null>
  /**
   * For how many people each variant could not be rendered: null of a variant that was rendered for somebody. Null: none
   * was rendered, or there is no test.
   */
  ab_failed: Generated<(number | null)[] | null>
  /** When everybody in the test was written to. Null: the test is not over. */
  ab_tested_at: Generated<Date | null>
  /** The variant that the rest gets, from 0. Null: none is chosen. */
  ab_winner: Generated<number | null>
  ab_decided_at: Generated<Date | null>
  scheduled_at: Date | null
  /** The time at which each person gets it, without a zone: `2026-12-01T09:00:00`. Null: all get it at once. */
  local_time: Generated<string | null>
  /** The zone of people whose own is not known. Null: it has no local time. */
  fallback_timezone: Generated<string | null>
  /** When the list of its recipients was begun: who joined later is not in it. */
  listed_at: Date | null
  listed_to: Generated<string>
  /** The segments by which its recipients are being listed. Null: they are not, or it has no segments. */
  listed_segments: ColumnType<ListedSegment[] | null, string | null | undefined, string | null>
  started_at: Date | null
  ended_at: Date | null
  /** When a worker looks at it next. In the future while a worker has it in hand. Null: nothing is to do. */
  due_at: Date | null
  /** No recipient below this one waits; in an A/B test, none of the test. */
  handled_to: Generated<string>
  /** With a local time: the time of `handled_to`. Null: recipients of all times may wait. */
  handled_send_at: Generated<Date | null>
  /** The end of the last slot of the throttle that was taken. Milliseconds of Unix time. */
  throttled_to: Generated<number>
  recipient_count: Generated<number>
  queued_count: Generated<number>
  handed_over_count: Generated<number>
  failed_count: Generated<number>
  left_count: Generated<number>
  unsubscribed_count: Generated<number>
  suppressed_count: Generated<number>
  canceled_count: Generated<number>
  /** The reason why it waits while it is sending. Null: it does not wait. */
  waiting_for: Generated<'local_time' | 'send_window' | 'ab_test' | null>
  /** Null: it goes on, or waits for people to choose a winner. */
  waiting_until: Generated<Date | null>
  /** Turns that failed one after the other. */
  failed_turns: Generated<number>
  created_at: Date
  updated_at: Date
  /** Gone for readers; its recipients are being deleted. Null: it is there. */
  deleted_at: Date | null
}

export type CampaignRecipientsTable = {
  account_id: string
  campaign_id: string
  subscriber_id: string
  /** The instant of the local time. Null: the campaign has none. */
  send_at: Generated<Date | null>
  /** The variant of a person in the A/B test. Null: of the rest, or there is no test. */
  variant: Generated<number | null>
  /** `waiting` of a canceled campaign stands for `canceled`. */
  status: CampaignRecipientStatus
  email_id: string | null
  /** Of `skipped`: `left`, `unsubscribed` or `suppressed`. Of `failed`: the fault, for people. */
  reason: string | null
}

export type CampaignLinksTable = {
  account_id: string
  campaign_id: string
  /** From 1. */
  number: number
  /** As it was written, with its Liquid. */
  link: string
}

/** The messages of variants that have one of their own. */
export type CampaignVariantsTable = {
  account_id: string
  campaign_id: string
  /** From 0. */
  number: number
  preheader: string | null
  html: string | null
  mjml: string | null
  text: string | null
  /** It may be deleted. Null: the content is the variant's own. */
  template_id: Generated<string | null>
  /** The version that was copied. Null: it has no template, or the campaign was not sent yet. */
  template_version: Generated<number | null>
  /** The variant's own, in the form of those of the campaign. Null: those of the campaign are used. */
  constants: ColumnType<Constants | null, string | null | undefined, string | null>
}
