import { SegmentedControl } from '@mantine/core'

/** How a message is written. */
export type ContentFormat = 'html' | 'mjml'

/** How it is edited. Blocks are stored as MJML. */
export type ContentEditor = ContentFormat | 'blocks'

type Props = { value: ContentEditor; onChange: (editor: ContentEditor) => void; isReadOnly?: boolean }

const labels: Record<ContentEditor, string> = { blocks: 'Blocks', html: 'HTML', mjml: 'MJML' }
const choices = (Object.keys(labels) as ContentEditor[]).map((value) => ({ value, label: labels[value] }))

/** Chooses how a message is written. */
export function ContentEditorSwitch({ value, onChange, isReadOnly = false }: Props) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Written as"
      data={choices}
      value={value}
      disabled={isReadOnly}
      onChange={(chosen) => onChange(chosen as ContentEditor)}
    />
  )
}
