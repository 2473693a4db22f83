/** The fields that the screens show of an event of any type. */
export type EventSummary = {
  id: string
  type: string
  at: string
  /** A description of the event in one line. May be empty. */
  about: string
  /** The screens of what it is about. */
  objects: readonly EventObject[]
}

export type EventObject = { label: string; id: string; path: string }

/** The fields that say the most about what an event is about, the best first. */
const telling = ['to', 'email', 'domain', 'name', 'subscriberId', 'campaignId']

/** The fields with the id of something that has a screen. */
const objectFields = [
  ['emailId', 'Email', '/emails'],
  ['subscriberId', 'Subscriber', '/subscribers'],
  ['audienceId', 'Audience', '/audiences'],
  ['domainId', 'Domain', '/domains'],
  ['campaignId', 'Campaign', '/campaigns'],
] as const

/** Reads what all events have. Email events have another name for their time than all others. */
export function summaryOf(event: Readonly<Record<string, unknown>>): EventSummary {
  const data: Record<string, unknown> = { ...Object(event.data) }
  const about = [telling.map((name) => textOf(data[name])).find((text) => text !== ''), textOf(data.subject)]
  return {
    id: textOf(event.id),
    type: textOf(event.type),
    at: textOf(event.timestamp ?? event.created),
    about: about.filter((part) => part !== undefined && part !== '').join(' · '),
    objects: objectFields.flatMap(([field, label, path]) => {
      const id = textOf(data[field])
      return id === '' ? [] : [{ label, id, path: `${path}/${id}` }]
    }),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
