import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../scripts/support/free-port.ts'
import { isThere } from '../../scripts/support/run.ts'
import { type ServiceProcess, startService } from '../main/service-process.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { fenceOf, fencesOf, readDocument, readPages, root, sectionOfPages } from './document.ts'
import { type ReceiverProcess, runReceiver } from './receiver-process.ts'
import { createNames, type Names, type Step, shapeOf, stepsOf } from './tour.ts'

/*
 * Does what the documents tell their reader to do, with a service and a receiver of its own, and compares
 * what comes out with what was pasted. Identifiers, times and the like are others in every run.
 */

/** The pages with commands, in the order to run them: what one makes, the next ones use. */
const toured = [
  'README.md',
  'docs/operating/accounts-and-keys.md',
  'docs/quickstart.md',
  'docs/reference/event-types.md',
  'docs/guides/polling.md',
  'docs/guides/sending-email.md',
  'docs/reference/errors.md',
  'docs/operating/monitoring.md',
  'docs/guides/first-newsletter.md',
]
const hasTools = (await isThere('bash', '--version')) && (await isThere('curl', '--version'))
const title = `every command prints what the documents show${hasTools ? '' : ' (skipped: bash or curl is not on this machine)'}`

const documented = { service: '127.0.0.1:3000', receiver: '127.0.0.1:4000' }

let directory: string
let service: ServiceProcess

beforeAll(async () => {
  directory = await mkdtemp(join(scratchDirectory(), 'postern-tour-'))
  await writeFile(join(directory, 'receiver.mjs'), fenceOf(sectionOfPages('Node'), 'js'))
  service = await startService({ DATA_DIR: join(directory, 'data') })
})

afterAll(async () => {
  service.child.kill('SIGTERM')
  await service.exit
  await rm(directory, { recursive: true, force: true })
})

/** Returns the documented output of the first start, from where the log ends. */
function documentedGreeting(): string {
  const [start] = fencesOf(sectionOfPages('Sixty seconds to the first webhook'))
  return start?.content.slice(start.content.indexOf('This is the first start')).trimEnd() ?? ''
}

/** A terminal: knows the variables and functions that were set in it. */
function createTerminal(names: Names) {
  const settings: string[] = []
  const env = { PATH: process.env.PATH, HOME: directory, DATA_DIR: join(directory, 'data'), POSTERN_URL: service.url }
  return async (command: string): Promise<string> => {
    const line = names.translate(command)
    if (/^\w+(?:=|\(\) )/.test(line)) {
      settings.push(line)
      return ''
    }
    const script = [...settings, line].join('\n')
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: root, env })
    return stdout.trimEnd()
  }
}

/** Whether a command only looks, so that it may look again until what it waits for has happened. */
function isLook(command: string): boolean {
  return /^(?:api|curl) /.test(command) && !/ -(?:d|X) /.test(command)
}

test('every page with commands is run', () => {
  const withSteps = readPages().filter(({ text }) => stepsOf(text).length > 0)
  expect(withSteps.map(({ name }) => name).toSorted()).toEqual(toured.toSorted())
})

test.skipIf(!hasTools)(title, { timeout: 120_000 }, async () => {
  const port = await freePort()
  const names = createNames()
  names.set(documented.service, new URL(service.url).host)
  names.set(documented.receiver, `127.0.0.1:${port}`)
  const greeting = service.greeting.slice(service.greeting.indexOf('This is the first start'))
  expect(shapeOf(greeting)).toBe(shapeOf(documentedGreeting()))
  names.learn(documentedGreeting(), greeting)

  const run = createTerminal(names)
  const file = join(directory, 'receiver.mjs')
  let receiver: ReceiverProcess | undefined

  async function take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'start receiver':
        receiver = await runReceiver({ program: process.execPath, file, port, secret: names.translate(step.secret) })
        return
      case 'stop receiver':
        return receiver?.stop()
      case 'printed':
        await expect.poll(() => shapeOf(receiver?.printed() ?? '')).toBe(shapeOf(step.output))
        return names.learn(step.output, receiver?.printed() ?? '')
      case 'command': {
        let printed = ''
        const look = async () => {
          printed = await run(step.command)
          return shapeOf(printed)
        }
        const told = shapeOf(step.output)
        if (isLook(step.command)) await expect.poll(look, { message: step.command }).toBe(told)
        else expect(await look(), step.command).toBe(told)
        names.learn(step.output, printed)
      }
    }
  }

  const steps = toured.flatMap((name) => stepsOf(readDocument(name).text))
  expect(steps.filter(({ kind }) => kind !== 'command')).toHaveLength(4)
  expect(steps.length).toBeGreaterThan(25)
  try {
    for (const step of steps) await take(step)
  } finally {
    await receiver?.stop()
  }
})
