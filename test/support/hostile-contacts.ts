import { contract } from '../../contract/index.ts'
import { importCsv } from './imports.ts'
import type { TestService } from './service.ts'

type Options = {
  audienceId: string
  /** The text for every field. */
  script: string
}

/** Makes a segment, a topic, a brand and an import with script in every field that their screens show. Returns their ids. */
export async function writeHostileContacts(
  service: Pick<TestService, 'client'>,
  { audienceId, script }: Options,
): Promise<Record<'segment' | 'import', string>> {
  const segment = await service.client.succeed(contract.segments.create, {
    body: {
      audienceId,
      name: script,
      conditions: {
        type: 'not',
        condition: { type: 'field', field: 'lastName', operator: 'is', value: `${script}!` },
      },
    },
  })
  const name = script.slice(0, 200)
  await service.client.succeed(contract.topics.create, { body: { name, description: script, default: 'opt_out' } })
  await service.client.succeed(contract.brands.update, { body: { name: script.slice(0, 100), text: script } })
  const quoted = `"${script.replaceAll('"', '""')}"`
  const csv = `email,${quoted}\n${quoted},x\n`
  return { segment: segment.id, import: await importCsv(service, { audienceId, fileName: script, csv }) }
}
