import { contract } from '../../contract/index.ts'
import type { TestClient } from '../support/client.ts'
import type { PathParameters } from '../support/fixtures.ts'

/** Has a segment name a contact property, which is deleted then. */
export async function forgetProperty(client: TestClient, { id = '' }: PathParameters): Promise<void> {
  const body = { key: `of_${id}`, type: 'number' as const }
  const { key } = await client.succeed(contract.contactProperties.create, { body })
  const conditions = { type: 'property', property: key, operator: 'exists', value: true } as const
  await client.succeed(contract.segments.update, { params: { id }, body: { conditions } })
  await client.succeed(contract.contactProperties.delete, { params: { key } })
}
