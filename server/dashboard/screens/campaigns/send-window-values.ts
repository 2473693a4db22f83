import type { Input } from '../../api/client.ts'
import type { CampaignDetails } from './campaign.ts'

type Weekday = NonNullable<CampaignDetails['sendWindow']>['days'][number]

/** The hours in which a campaign sends, as they are written. */
export type SendWindowValues = {
  isOn: boolean
  from: string
  to: string
  timezone: string
  /** None: every day. */
  days: Weekday[]
}

export const weekdays: readonly Weekday[] = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
]

/** Returns the name of a day as people write it. */
export function dayName(day: Weekday): string {
  return day.charAt(0).toUpperCase() + day.slice(1)
}

const list = new Intl.ListFormat('en', { type: 'conjunction' })

/** Returns the hours in words: "22:00 to 06:30 in Europe/Berlin, on Saturday and Sunday". */
export function hoursOf({ from, to, timezone, days }: NonNullable<CampaignDetails['sendWindow']>): string {
  return `${from} to ${to} in ${timezone}${days.length === weekdays.length ? '' : `, on ${list.format(days.map(dayName))}`}`
}

/** Working hours in the zone of the reader, which are not kept unless they are chosen. */
export const noSendWindow: SendWindowValues = {
  isOn: false,
  from: '09:00',
  to: '18:00',
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  days: [],
}

export function sendWindowValuesOf(sendWindow: CampaignDetails['sendWindow']): SendWindowValues {
  if (sendWindow === null) return noSendWindow
  const { days, ...rest } = sendWindow
  return { ...rest, isOn: true, days: days.length === weekdays.length ? [] : days }
}

/** Returns the hours as the API takes them. */
export function sendWindowBodyOf({
  isOn,
  from,
  to,
  timezone,
  days,
}: SendWindowValues): NonNullable<Input<'POST /v1/campaigns'>['body']>['sendWindow'] {
  return isOn ? { from, to, timezone, ...(days.length > 0 && { days }) } : null
}
