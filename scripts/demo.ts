import { email } from './demo/email.ts'
import { line } from './demo/print.ts'
import { assertRunning, clientOf, DemoError, keyFor } from './demo/service.ts'
import type { Story } from './demo/story.ts'
import { webhooks } from './demo/webhooks.ts'

/*
 * Shows a running service at work: `npm run demo` from a change to the webhook, `npm run demo -- email` an email from
 * the API call to its events.
 */

const stories: Readonly<Record<string, Story>> = { webhooks, email }

async function demonstrate(name: string, env: NodeJS.ProcessEnv): Promise<void> {
  const story = Object.hasOwn(stories, name) ? stories[name] : undefined
  if (story === undefined) throw new DemoError(`there is no "${name}"; there are ${Object.keys(stories).join(', ')}`)
  const baseUrl = env.POSTERN_URL || `http://${env.HOST || '127.0.0.1'}:${env.PORT || 3000}`
  await assertRunning(baseUrl)
  {
    // Deletes everything that the demo has created, last first, also after an error.
    await using undo = new AsyncDisposableStack()
    const key = await keyFor({ mode: story.keyMode, baseUrl, env, undo })
    await story.tell({ service: clientOf(baseUrl, key), baseUrl, undo })
  }
  line('')
  line(story.ending)
}

try {
  await demonstrate(process.argv[2] ?? 'webhooks', process.env)
} catch (error) {
  if (!(error instanceof DemoError)) throw error
  console.error(`demo: ${error.message}`)
  process.exitCode = 1
}
