import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { patienceMs } from '../support/patience.ts'
import { startTestService } from '../support/service.ts'

/** Rendering processes of this process. */
function renderProcesses(): number {
  const lines = execFileSync('ps', ['-A', '-o', 'ppid=,args='], { encoding: 'utf8' }).split('\n')
  return lines.filter((line) => line.trim().startsWith(`${process.pid} `) && line.includes('rendering/')).length
}

test('previews and campaigns are rendered in processes of their own', async () => {
  await using service = await startTestService()
  const { client } = service
  const template = await client.succeed(contract.templates.create, {
    body: { name: 'A', subject: 'A', text: 'A' },
  })
  expect(renderProcesses()).toBe(0)
  await client.succeed(contract.templates.render, { params: { id: template.id }, body: {} })
  expect(renderProcesses()).toBe(1)
  const testClient = client.as(service.keys.test)
  const audience = await client.succeed(contract.audiences.create, { body: { name: 'News' } })
  await client.succeed(contract.contacts.add, {
    params: { audienceId: audience.id },
    body: { email: 'ada@example.org' },
  })
  const { id } = await testClient.succeed(contract.campaigns.create, {
    body: {
      name: 'News',
      audienceId: audience.id,
      from: 'a@example.com',
      subject: 'News',
      content: { text: 'News' },
    },
  })
  await testClient.succeed(contract.campaigns.send, { params: { id }, body: {} })
  const found = () => testClient.succeed(contract.campaigns.get, { params: { id } })
  const since = performance.now()
  while ((await found()).status !== 'completed' && performance.now() - since < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect((await found()).status).toBe('completed')
  expect(renderProcesses()).toBe(2)
})
