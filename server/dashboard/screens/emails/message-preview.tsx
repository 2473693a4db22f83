import { Text } from '@mantine/core'
import { useMemo } from 'react'
import { styleNonce } from '../../style-nonce.ts'
import { useInlineImages } from './inline-images.ts'
import type { Message } from './message.ts'
import { previewDocument } from './preview-document.ts'
import { previewLimit } from './preview-html.ts'

/** What a click on a link may do: open a window, which then has nothing to do with the message. */
const sandbox = 'allow-popups allow-popups-to-escape-sandbox'

/** The HTML of a message in a frame that runs nothing and loads nothing. */
export function MessagePreview({ message, html }: { message: Message; html: string }) {
  const images = useInlineImages(message)
  const isTooLong = html.length > previewLimit
  // Not again each time the screen reads the message again.
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
      <iframe className="preview" title="Preview of the message" sandbox={sandbox} srcDoc={page} />
      <Text fz="xs" c="dimmed">
        Remote images are not loaded. Links open in a new window: <i>Links</i> lists where they lead.
      </Text>
    </>
  )
}
