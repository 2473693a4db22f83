import { Text } from '@mantine/core'
import { type ReactNode, useMemo } from 'react'
import { styleNonce } from '../../style-nonce.ts'
import type { InlineImages } from './inline-images.ts'
import { previewDocument } from './preview-document.ts'
import { previewLimit } from './preview-html.ts'

/** What a click on a link may do: open a window, which then has nothing to do with the message. */
const sandbox = 'allow-popups allow-popups-to-escape-sandbox'

type Props = {
  html: string
  images: InlineImages
  /** The name of the frame, for screen readers. */
  title: string
  /** Default: as wide as what it stands in. */
  width?: 'phone'
  /** What stands below the frame. */
  children: ReactNode
}

/** HTML of an email in a frame that runs nothing and loads nothing. */
export function HtmlPreview({ html, images, title, width, children }: Props) {
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
      <iframe className="preview" data-width={width} title={title} sandbox={sandbox} srcDoc={page} />
      <Text fz="xs" c="dimmed">
        {children}
      </Text>
    </>
  )
}
