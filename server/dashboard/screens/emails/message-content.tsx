import { SegmentedControl, Stack } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { CodeBlock } from '../../components/code-block.tsx'
import { LinkedText } from './linked-text.tsx'
import type { Message } from './message.ts'
import { MessageLinks } from './message-links.tsx'
import { MessagePreview } from './message-preview.tsx'
import { previewLimit } from './preview-html.ts'

type View = { label: string; show: () => ReactNode }

/**
 * The content of a message, one view at a time.
 *
 * @param props.more Views beside those of its HTML and its text.
 */
export function MessageContent({ message, more }: { message: Message; more: readonly View[] }) {
  const { html, text } = message
  const views: View[] = []
  if (html !== null) views.push({ label: 'Preview', show: () => <MessagePreview message={message} html={html} /> })
  if (text !== null) views.push({ label: 'Text', show: () => <LinkedText text={text} /> })
  if (html !== null && html.length <= previewLimit) {
    views.push({ label: 'Links', show: () => <MessageLinks html={html} /> })
  }
  if (html !== null) views.push({ label: 'HTML source', show: () => <CodeBlock isWide>{html}</CodeBlock> })
  views.push(...more)
  const [chosen, setChosen] = useState(views[0]?.label ?? '')
  return (
    <Stack align="flex-start">
      <div className="scrolls-sideways">
        <SegmentedControl
          size="xs"
          aria-label="View"
          value={chosen}
          onChange={setChosen}
          data={views.map(({ label }) => label)}
        />
      </div>
      {views.find(({ label }) => label === chosen)?.show()}
    </Stack>
  )
}
