import type { Service } from './service.ts'

/** What a story is told with. */
export type StoryMeans = {
  service: Service
  baseUrl: string
  /** How what is made is taken away again, in the end. */
  undo: AsyncDisposableStack
}

/** One demonstration. */
export type Story = {
  /** Of the key it needs. */
  keyMode: 'test' | 'live'
  /** Shows a running service at work. Throws DemoError when it cannot. */
  tell(means: StoryMeans): Promise<void>
  /** Printed when all is over. */
  ending: string
}
