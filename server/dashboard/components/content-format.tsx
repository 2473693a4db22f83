import { SegmentedControl } from '@mantine/core'

/** How a message is written. */
export type ContentFormat = 'html' | 'mjml'

type Props = { value: ContentFormat; onChange: (format: ContentFormat) => void; isReadOnly?: boolean }

const labels: Record<ContentFormat, string> = { html: 'HTML', mjml: 'MJML' }
const choices = (Object.keys(labels) as ContentFormat[]).map((value) => ({ value, label: labels[value] }))

/** Chooses how a message is written. What was written the other way stays until the choice is saved. */
export function ContentFormatSwitch({ value, onChange, isReadOnly = false }: Props) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Written as"
      data={choices}
      value={value}
      disabled={isReadOnly}
      onChange={(chosen) => onChange(chosen === 'mjml' ? 'mjml' : 'html')}
    />
  )
}

/** What MJML begins with. */
export const firstMjml = `<mjml>
  <mj-body>
    <mj-section>
      <mj-column>
        <mj-text>Hello,</mj-text>
        <mj-text>Write your message here.</mj-text>
        <mj-text><a href="{{ unsubscribeUrl }}">Unsubscribe</a></mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`
