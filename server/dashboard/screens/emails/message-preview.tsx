import { HtmlPreview } from './html-preview.tsx'
import { useInlineImages } from './inline-images.ts'
import type { Message } from './message.ts'

/** The HTML of a message in a frame that runs nothing. What it loads, a reader asks for each message. */
export function MessagePreview({ message, html }: { message: Message; html: string }) {
  const images = useInlineImages(message)
  return (
    <HtmlPreview key={message.id} html={html} images={images} title="Preview of the message">
      Links open in a new window: <i>Links</i> lists where they lead.
    </HtmlPreview>
  )
}
