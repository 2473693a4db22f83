import type { Recorder } from './recorder.ts'

export type SubscribeOptions = { url: string; key: string; recorder: Recorder; count: number }

/** Makes webhooks for the events of the load, each with a path of its own at the recorder. */
export async function subscribe({ url, key, recorder, count }: SubscribeOptions): Promise<void> {
  for (let number = 1; number <= count; number++) {
    const response = await fetch(`${url}/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${recorder.url}/${number}`, events: ['subscriber.added'] }),
    })
    if (response.status !== 201) throw new Error(`no webhook was made: ${await response.text()}`)
  }
}
