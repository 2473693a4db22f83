import { Group } from '@mantine/core'
import type { Result } from '../../api/client.ts'
import { Copyable } from '../../components/copyable.tsx'
import { State } from '../../components/state.tsx'

type RecordOfDomain = Result<'GET /v1/domains/:id'>['records'][number]

const purposes: Readonly<Record<RecordOfDomain['purpose'], string>> = {
  dkim_rsa: 'DKIM (RSA)',
  dkim_ed25519: 'DKIM (Ed25519)',
  spf: 'SPF',
  return_path: 'Return path',
  dmarc: 'DMARC',
}

/** One record to publish, with what to copy and what was found. */
export function DnsRecord({ record }: { record: RecordOfDomain }) {
  const { purpose, type, name, value, priority, required, status, hint, key } = record
  return (
    <article className="record">
      <Group justify="space-between" gap="xs">
        <h3>
          {purposes[purpose]}
          {key === 'next' && ' of the new key'}
          <span className="dimmed"> · {required ? 'required' : 'recommended'}</span>
        </h3>
        <State of={status} />
      </Group>
      <dl className="facts">
        <dt>Type</dt>
        <dd className="mono">{type}</dd>
        <dt>Name</dt>
        <dd>
          <Copyable label={`Copy the name of ${purposes[purpose]}`} value={name} wraps />
        </dd>
        <dt>Value</dt>
        <dd>
          <Copyable label={`Copy the value of ${purposes[purpose]}`} value={value} wraps />
        </dd>
        {priority !== null && (
          <>
            <dt>Priority</dt>
            <dd className="mono">{priority}</dd>
          </>
        )}
      </dl>
      {hint !== null && status !== 'verified' && <p className="hint">{hint}</p>}
    </article>
  )
}
