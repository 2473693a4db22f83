import type { Service } from './service.ts'

/** The service that a demonstration runs on. */
export type StoryMeans = {
  service: Service
  baseUrl: string
  /** Deletes what the demonstration has created. */
  undo: AsyncDisposableStack
}

/** A demonstration that starts a service of its own. */
export type OwnStory = {
  keyMode: null
  /** `size`: how much of it, as it was given on the command line. Throws DemoError when it cannot go on. */
  tell(size: string | undefined): Promise<void>
  ending: string
}

/** A demonstration on a running service. */
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
