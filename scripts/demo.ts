import { parseArgs } from 'node:util'
import { openInBrowser } from './demo/browser.ts'
import { campaign } from './demo/campaign.ts'
import { email } from './demo/email.ts'
import { line } from './demo/print.ts'
import { assertRunning, clientOf, DemoError, keyFor } from './demo/service.ts'
import type { OwnStory, Story } from './demo/story.ts'
import { webhooks } from './demo/webhooks.ts'

/*
 * Shows a running service at work: `npm run demo` from a change to the webhook, `npm run demo -- email` an email from
 * the API call to its events. It ends with where the dashboard shows it; `--open` opens that in a browser.
 * `npm run demo -- campaign` starts a service of its own, because it kills it.
 */

type Options = { isOpened: boolean; env: NodeJS.ProcessEnv }

const stories: Readonly<Record<string, Story | OwnStory>> = { webhooks, email, campaign }

async function demonstrate([name = 'webhooks', size]: readonly string[], { isOpened, env }: Options): Promise<void> {
  const story = Object.hasOwn(stories, name) ? stories[name] : undefined
  if (story === undefined) throw new DemoError(`there is no "${name}"; there are ${Object.keys(stories).join(', ')}`)
  if (story.keyMode === null) {
    await story.tell(size)
    line('')
    line(story.ending)
    return
  }
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
  const screen = `${baseUrl}${story.screen}`
  line(`The dashboard shows what stays: ${screen}`)
  if (isOpened) await openInBrowser(screen, { isTerminal: process.stdout.isTTY === true, env })
}

/** Throws DemoError for an option that there is not. */
function readArguments() {
  const { values, positionals } = parseArgs({
    options: { open: { type: 'boolean' } },
    allowPositionals: true,
    strict: false,
  })
  const unknown = Object.keys(values).find((name) => name !== 'open')
  if (unknown !== undefined) throw new DemoError(`there is no option "--${unknown}"; there is --open`)
  return { values, positionals }
}

try {
  const { values, positionals } = readArguments()
  await demonstrate(positionals, { isOpened: values.open === true, env: process.env })
} catch (error) {
  if (!(error instanceof DemoError)) throw error
  console.error(`demo: ${error.message}`)
  process.exitCode = 1
}
