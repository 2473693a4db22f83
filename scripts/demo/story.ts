import type { Service } from './service.ts'

/** The service that a demonstration runs on. */
export type StoryMeans = {
  service: Service
  baseUrl: string
  /** Deletes what the demonstration has created. */
  undo: AsyncDisposableStack
}

/** A demonstration. */
export type Story = {
  /** Mode of the key that it needs. */
  keyMode: 'test' | 'live'
  /** Shows a running service at work. Throws DemoError when it cannot. */
  tell(means: StoryMeans): Promise<void>
  /** Printed at the end. */
  ending: string
  /** The path of what the dashboard shows of it. */
  screen: string
}
