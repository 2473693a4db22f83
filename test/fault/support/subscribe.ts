import type { EventTypeName } from '../../../contract/event-types.ts'
import type { Recorder } from './recorder.ts'

export type SubscribeOptions = {
  url: string
  key: string
  recorder: Recorder
  count: number
  /** Default: subscribers that are added. */
  events?: readonly EventTypeName[]
}

/** Makes webhooks for these events, each with a path of its own at the recorder. */
export async function subscribe({
  url,
  key,
  recorder,
  count,
  events = ['subscriber.added'],
}: SubscribeOptions): Promise<void> {
  for (let number = 1; number <= count; number++) {
    const response = await fetch(`${url}/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${recorder.url}/${number}`, events }),
    })
    if (response.status !== 201) throw new Error(`no webhook was made: ${await response.text()}`)
  }
}
