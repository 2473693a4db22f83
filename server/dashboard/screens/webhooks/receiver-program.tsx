import { PasswordInput, SegmentedControl, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { CodeSection } from '../../components/code-section.tsx'
import { receivers } from './receiver-code.ts'
import { isSecret, leadsHere, portOf, secretPlaceholder } from './receiver-command.ts'

/** The URL of a webhook that leads to a receiver which is started as it is. */
const usualUrl = 'http://127.0.0.1:4000/hooks'

/**
 * A program that receives events, in one of five languages, and the command that runs it.
 *
 * @param props.url The URL of the webhook. Null: there is none yet.
 */
export function ReceiverProgram({ url }: { url: string | null }) {
  const [chosen, setChosen] = useState('Node')
  const [secret, setSecret] = useState('')
  const receiver = receivers.find(({ language }) => language === chosen) ?? receivers[0]
  if (receiver === undefined) return null
  const port = portOf(url ?? usualUrl)
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
      <CodeSection title={`1. Save it as ${receiver.file}`} code={receiver.code} copyLabel="Copy the code" />
      <CodeSection title="2. Run it" code={command} copyLabel="Copy the command">
        <Text fz="sm" c="dimmed" mt="xs">
          <Where url={url} port={port} />
        </Text>
      </CodeSection>
    </>
  )
}

/** Where the receiver listens, and how the webhook leads there. */
function Where({ url, port }: { url: string | null; port: number }) {
  if (url === null) {
    return (
      <>
        It listens on 127.0.0.1:{port}. A webhook leads there with the URL{' '}
        <span className="mono breaks">{usualUrl}</span>, where the service may reach private networks.
      </>
    )
  }
  if (leadsHere(url)) {
    return (
      <>
        It listens where the webhook leads: <span className="mono breaks">{url}</span>
      </>
    )
  }
  return (
    <>
      It listens on 127.0.0.1:{port}. Have <span className="mono breaks">{url}</span> lead there, such as by a proxy
      with TLS.
    </>
  )
}
