import { Button, Group, Text } from '@mantine/core'
import { IconPhoto } from '@tabler/icons-react'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { styleNonce } from '../../style-nonce.ts'
import type { InlineImages } from './inline-images.ts'
import { previewDocument } from './preview-document.ts'
import { previewLimit } from './preview-html.ts'

/** The sandbox of the frame: a link may open a window, to which the restrictions of the message do not apply. */
const sandbox = 'allow-popups allow-popups-to-escape-sandbox'

type Props = {
  html: string
  images: InlineImages
  /** The name of the frame, for screen readers. */
  title: string
  /** Default: as wide as what it stands in. */
  width?: 'phone'
  /** A note below the frame. */
  children: ReactNode
}

const nothing = { html: '', hasRemoteImages: false }

/** HTML of an email in a frame that runs nothing, and loads nothing but remote images where a reader asks for them. */
export function HtmlPreview({ html, images, title, width, children }: Props) {
  const [withRemoteImages, setWithRemoteImages] = useState(false)
  const isTooLong = html.length > previewLimit
  // Not again each time the screen reads the message again.
  const preview = useMemo(
    () => (isTooLong ? nothing : previewDocument(html, { nonce: styleNonce(), images, withRemoteImages })),
    [html, images, isTooLong, withRemoteImages],
  )
  if (isTooLong) {
    return (
      <Text c="dimmed">
        The message is too long to be previewed: it has {html.length.toLocaleString('en')} characters, and a preview at
        most {previewLimit.toLocaleString('en')}. Its HTML source is complete.
      </Text>
    )
  }
  const frame = { className: 'preview', 'data-width': width, title }
  return (
    <>
      {withRemoteImages ? (
        <RemoteFrame {...frame} page={preview.html} />
      ) : (
        <iframe {...frame} title={title} sandbox={sandbox} srcDoc={preview.html} />
      )}
      {preview.hasRemoteImages && !withRemoteImages && (
        <Group gap="xs">
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<IconPhoto size={14} aria-hidden />}
            onClick={() => setWithRemoteImages(true)}
          >
            Load remote images
          </Button>
          <Text fz="xs" c="dimmed">
            Their servers learn your IP address, your browser and when you looked.
          </Text>
        </Group>
      )}
      <Text fz="xs" c="dimmed">
        {children} {remoteWords(preview.hasRemoteImages, withRemoteImages)}
      </Text>
    </>
  )
}

function remoteWords(hasRemoteImages: boolean, withRemoteImages: boolean): string {
  if (!hasRemoteImages) return 'Nothing is loaded from other servers.'
  return withRemoteImages ? 'Remote images are loaded, for this view.' : 'Remote images are not loaded.'
}

type FrameProps = { className: string; 'data-width': Props['width']; title: string; page: string }

/**
 * A frame that loads remote images. Its page has a policy of its own, and shows the document that it is sent. Where the
 * browser knows such frames, it also has no cookies of other sites.
 */
function RemoteFrame({ page, title, ...rest }: FrameProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setLoaded] = useState(false)
  useEffect(() => {
    // To any origin: the sandbox has one that has no name.
    if (isLoaded) frame.current?.contentWindow?.postMessage(page, '*')
  }, [isLoaded, page])
  return (
    <iframe
      {...rest}
      {...{ credentialless: true }}
      ref={frame}
      title={title}
      sandbox={`allow-scripts ${sandbox}`}
      referrerPolicy="no-referrer"
      src="/app/preview-frame"
      onLoad={() => setLoaded(true)}
    />
  )
}
