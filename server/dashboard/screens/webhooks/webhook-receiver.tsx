import { PasswordInput, SegmentedControl, Stack, Text } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { CopyText } from '../../components/copy-text.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { receivers } from './receiver-code.ts'
import { isSecret, leadsHere, portOf, secretPlaceholder } from './receiver-command.ts'
import type { Webhook } from './webhook.ts'

/** A program that receives the events of a webhook, in one of five languages. */
export function WebhookReceiver() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/webhooks/:id', { params: { id } })
  return (
    <Screen
      title="Receiver"
      subtitle="A program that checks signatures, refuses replays and handles each event once."
      parent={{ label: 'Webhook', path: `/webhooks/${id}` }}
    >
      <Loaded query={query} what="webhook">
        {(webhook) => <Receiver webhook={webhook} />}
      </Loaded>
    </Screen>
  )
}

function Receiver({ webhook: { url } }: { webhook: Webhook }) {
  const [chosen, setChosen] = useState('Node')
  const [secret, setSecret] = useState('')
  const receiver = receivers.find(({ language }) => language === chosen) ?? receivers[0]
  if (receiver === undefined) return null
  const port = portOf(url)
  const given = secret.trim()
  const command = `WEBHOOK_SECRET='${isSecret(given) ? given : secretPlaceholder}' PORT=${port} ${receiver.run(port)}`
  return (
    <>
      <Stack maw={640} mb="lg">
        <SegmentedControl
          aria-label="Language"
          value={receiver.language}
          onChange={setChosen}
          data={receivers.map(({ language }) => language)}
        />
        <PasswordInput
          label="Signing secret"
          description="For the command below. It stays on this page and is not sent anywhere. A lost one is replaced by “Rotate the secret”."
          placeholder={secretPlaceholder}
          autoComplete="off"
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
          error={given === '' || isSecret(given) ? null : 'A signing secret begins with whsec_ and goes on in base64'}
        />
      </Stack>
      <Section
        title={`1. Save it as ${receiver.file}`}
        action={<CopyText value={receiver.code} label="Copy the code" />}
      >
        <CodeBlock>{receiver.code}</CodeBlock>
      </Section>
      <Section title="2. Run it" action={<CopyText value={command} label="Copy the command" />}>
        <CodeBlock>{command}</CodeBlock>
        <Text fz="sm" c="dimmed" mt="xs">
          {leadsHere(url) ? (
            <>
              It listens where the webhook leads: <span className="mono breaks">{url}</span>
            </>
          ) : (
            <>
              It listens on 127.0.0.1:{port}. Have <span className="mono breaks">{url}</span> lead there, such as by a
              proxy with TLS.
            </>
          )}
        </Text>
      </Section>
    </>
  )
}
