/** What the screens show of an event of any type. */
export type EventSummary = {
  id: string
  type: string
  at: string
  /** What it is about, in one line. May be empty. */
  about: string
  emailId: string | null
}

/** The fields that say the most about what an event is about, the best first. */
const telling = ['to', 'email', 'domain', 'name', 'subscriberId', 'campaignId']

/** Reads what all events have. Email events have another name for their time than all others. */
export function summaryOf(event: Readonly<Record<string, unknown>>): EventSummary {
  const data: Record<string, unknown> = { ...Object(event.data) }
  const about = [telling.map((name) => textOf(data[name])).find((text) => text !== ''), textOf(data.subject)]
  return {
    id: textOf(event.id),
    type: textOf(event.type),
    at: textOf(event.timestamp ?? event.created),
    about: about.filter((part) => part !== undefined && part !== '').join(' · '),
    emailId: textOf(data.emailId) || null,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
