import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { freePort } from '../../scripts/support/free-port.ts'
import { startReceiver } from '../support/receiver.ts'
import { startTestService } from '../support/service.ts'
import { fenceOf, sectionOfPages, unwrapped } from './document.ts'
import { runReceiver } from './receiver-process.ts'

/* The collector of the documents runs as it stands, and prints what they show for a contact that is added. */

const section = sectionOfPages('Traces')
const durations = /[\d.]+(?= ms$)/gm

function linesOf(text: string): string[] {
  return text.trim().replaceAll(durations, '…').split('\n').sort()
}

test('the collector of the documents prints the spans they show', async () => {
  await using cleanUp = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-collector-'))
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'collector.mjs')
  await writeFile(file, fenceOf(section, 'js'))
  const port = await freePort()
  const collector = cleanUp.use(await runReceiver({ program: process.execPath, file, port, secret: '' }))
  const receiver = cleanUp.use(await startReceiver())
  const [traceparent = ''] = /(?<=traceparent: )00-[\da-f-]+/.exec(unwrapped(section)) ?? []
  const [traceId = ''] = /[\da-f]{32}/.exec(traceparent) ?? []

  await using service = await startTestService({
    tracing: {
      endpoint: `http://127.0.0.1:${port}/v1/traces`,
      headers: {},
      serviceName: 'postern',
      sampler: 'parentbased_always_on',
      samplerRatio: 1,
    },
  })
  const { client } = service
  const events = ['contact.created', 'contact.updated'] as const
  await client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: [...events] } })
  const audience = await client.succeed(contract.audiences.create, { body: { name: 'Newsletter' } })
  await client.succeed(
    contract.contacts.add,
    { params: { audienceId: audience.id }, body: { email: 'ada@example.com', firstName: 'Ada' } },
    { headers: { traceparent } },
  )
  await receiver.received(1)
  await service.stop()
  const printed = () => linesOf(collector.printed()).filter((line) => line.startsWith(traceId))
  await expect.poll(printed).toEqual(linesOf(fenceOf(section, 'text')))
})
