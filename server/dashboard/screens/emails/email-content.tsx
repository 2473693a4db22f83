import { SegmentedControl, Stack, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import { Facts } from '../../components/facts.tsx'
import { styleNonce } from '../../style-nonce.ts'
import type { EmailDetails } from './email.ts'
import { useInlineImages } from './inline-images.ts'
import { MessageLinks } from './message-links.tsx'
import { previewDocument } from './preview-document.ts'
import { previewLimit } from './preview-html.ts'

/** What was sent, as HTML, text and headers. */
export function EmailContent({ email }: { email: EmailDetails }) {
  const { html, text, headers } = email
  const views = [
    ...(html === null ? [] : [{ label: 'Preview', value: 'preview' }]),
    ...(text === null ? [] : [{ label: 'Text', value: 'text' }]),
    ...(html === null || html.length > previewLimit ? [] : [{ label: 'Links', value: 'links' }]),
    ...(html === null ? [] : [{ label: 'HTML source', value: 'source' }]),
    { label: 'More', value: 'more' },
  ]
  const [view, setView] = useState(views[0]?.value ?? 'more')
  return (
    <Stack align="flex-start">
      <SegmentedControl size="xs" aria-label="View" value={view} onChange={setView} data={views} />
      {view === 'preview' && html !== null && <Preview email={email} html={html} />}
      {view === 'text' && <pre className="block wide">{text}</pre>}
      {view === 'links' && html !== null && <MessageLinks html={html} />}
      {view === 'source' && <pre className="block wide">{html}</pre>}
      {view === 'more' && (
        <Facts
          of={[
            ['Opens tracked', email.trackOpens ? 'Yes' : 'No'],
            ['Clicks tracked', email.trackClicks ? 'Yes' : 'No'],
            ...Object.entries(headers).map(([name, value]) => [name, value] as const),
          ]}
        />
      )}
    </Stack>
  )
}

function Preview({ email, html }: { email: EmailDetails; html: string }) {
  const images = useInlineImages(email)
  const isTooLong = html.length > previewLimit
  // Not again each time the screen reads the email again.
  const page = useMemo(
    () => (isTooLong ? '' : previewDocument(html, { nonce: styleNonce(), images })),
    [html, images, isTooLong],
  )
  if (isTooLong) {
    return (
      <Text c="dimmed">
        The message is too long to be previewed: it has {html.length.toLocaleString('en')} characters, and a preview at
        most {previewLimit.toLocaleString('en')}. Its HTML source is complete.
      </Text>
    )
  }
  return (
    <>
      <iframe className="preview" title="Preview of the message" sandbox="" srcDoc={page} />
      <Text fz="xs" c="dimmed">
        Remote images are not loaded, and links lead nowhere here: <i>Links</i> lists where they lead.
      </Text>
    </>
  )
}
