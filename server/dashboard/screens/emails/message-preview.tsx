import { HtmlPreview } from './html-preview.tsx'
import { useInlineImages } from './inline-images.ts'
import type { Message } from './message.ts'

/** The HTML of a message in a frame that runs nothing and loads nothing. */
export function MessagePreview({ message, html }: { message: Message; html: string }) {
  const images = useInlineImages(message)
  return (
    <HtmlPreview html={html} images={images} title="Preview of the message">
      Remote images are not loaded. Links open in a new window: <i>Links</i> lists where they lead.
    </HtmlPreview>
  )
}
