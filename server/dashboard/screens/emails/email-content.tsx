import { SegmentedControl, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { Facts } from '../../components/facts.tsx'
import { styleNonce } from '../../style-nonce.ts'
import type { EmailDetails } from './email.ts'
import { previewDocument } from './preview-document.ts'

/** What was sent, as HTML, text and headers. */
export function EmailContent({ email }: { email: EmailDetails }) {
  const { html, text, headers, attachments } = email
  const views = [
    ...(html === null ? [] : [{ label: 'Preview', value: 'preview' }]),
    ...(text === null ? [] : [{ label: 'Text', value: 'text' }]),
    ...(html === null ? [] : [{ label: 'HTML source', value: 'source' }]),
    { label: 'More', value: 'more' },
  ]
  const [view, setView] = useState(views[0]?.value ?? 'more')
  return (
    <Stack align="flex-start">
      <SegmentedControl size="xs" aria-label="View" value={view} onChange={setView} data={views} />
      {view === 'preview' && html !== null && (
        <>
          <iframe
            className="preview"
            title="Preview of the message"
            sandbox=""
            srcDoc={previewDocument(html, styleNonce())}
          />
          <Text fz="xs" c="dimmed">
            Remote images are not loaded, and links lead nowhere here.
          </Text>
        </>
      )}
      {view === 'text' && <pre className="block wide">{text}</pre>}
      {view === 'source' && <pre className="block wide">{html}</pre>}
      {view === 'more' && (
        <Facts
          of={[
            ['Opens tracked', email.trackOpens ? 'Yes' : 'No'],
            ['Clicks tracked', email.trackClicks ? 'Yes' : 'No'],
            ['Attachments', attachments.length === 0 ? 'None' : attachments.map(describe).join(', ')],
            ...Object.entries(headers).map(([name, value]) => [name, value] as const),
          ]}
        />
      )}
    </Stack>
  )
}

const units = ['bytes', 'kB', 'MB']

function describe({ filename, contentType, size }: EmailDetails['attachments'][number]): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), units.length - 1)
  const shown = step === 0 ? size : (size / 1000 ** step).toFixed(1)
  return `${filename} (${contentType}, ${shown} ${units[step]})`
}
