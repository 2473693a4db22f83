import '../../styles/editor.css'
import { SegmentedControl } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { HtmlPreview } from './html-preview.tsx'
import { noImages } from './inline-images.ts'
import { LinkedText } from './linked-text.tsx'

type Props = {
  subject: string
  html: string | null
  text: string | null
  /** A note below the HTML. */
  children?: ReactNode
}

/** A message before it is sent, as mail programs on a desktop and on a phone show it, and as text. */
export function MessageViews({ subject, html, text, children }: Props) {
  const views = [...(html === null ? [] : ['Desktop', 'Phone']), ...(text === null ? [] : ['Text'])]
  const [chosen, setChosen] = useState('Desktop')
  const view = views.includes(chosen) ? chosen : views[0]
  return (
    <>
      <div className="preview-head">
        <p className="preview-subject">{subject === '' ? <span className="dimmed">No subject</span> : subject}</p>
        {view !== undefined && (
          <SegmentedControl size="xs" aria-label="Preview as" data={views} value={view} onChange={setChosen} />
        )}
      </div>
      {view === undefined && <p className="dimmed">There is neither HTML nor text yet.</p>}
      {view === 'Text' && text !== null && <LinkedText text={text} />}
      {(view === 'Desktop' || view === 'Phone') && html !== null && (
        <HtmlPreview html={html} images={noImages} title="Preview" {...(view === 'Phone' && { width: 'phone' })}>
          {children}
        </HtmlPreview>
      )}
    </>
  )
}
