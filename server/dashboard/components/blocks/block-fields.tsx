import { Group, TextInput as LineInput, NativeSelect } from '@mantine/core'
import { type Alignment, alignments, type Block } from './mail-blocks.ts'
import { TextInput } from './text-input.tsx'

type Props = { block: Block; onChange: (block: Block) => void; isReadOnly: boolean }

/** The inputs for the content of a block. */
export function BlockFields({ block, onChange, isReadOnly }: Props) {
  const line = (
    label: string,
    name: string,
    of: { value: string; description?: string; isNumber?: boolean; error?: string | false },
  ) => (
    <LineInput
      label={label}
      value={of.value}
      readOnly={isReadOnly}
      {...(of.description !== undefined && { description: of.description })}
      error={of.error || null}
      {...(of.isNumber && { inputMode: 'numeric', maxLength: 4 })}
      onChange={({ currentTarget: { value } }) =>
        onChange({ ...block, [name]: of.isNumber ? value.replace(/\D/g, '') : value })
      }
    />
  )
  const align = (value: Alignment) => (
    <NativeSelect
      label="Align"
      data={alignments.map((one) => ({ value: one, label: one.charAt(0).toUpperCase() + one.slice(1) }))}
      value={value}
      disabled={isReadOnly}
      onChange={({ currentTarget }) => onChange({ ...block, align: currentTarget.value } as Block)}
    />
  )
  switch (block.kind) {
    case 'heading':
      return (
        <>
          {line('Text', 'text', { value: block.text })}
          <Group gap="xs">
            <NativeSelect
              label="Size"
              data={[
                { value: '1', label: 'Large' },
                { value: '2', label: 'Small' },
              ]}
              value={String(block.level)}
              disabled={isReadOnly}
              onChange={({ currentTarget }) => onChange({ ...block, level: currentTarget.value === '1' ? 1 : 2 })}
            />
            {align(block.align)}
          </Group>
        </>
      )
    case 'text':
      return (
        <>
          <TextInput
            label="Text"
            value={block.html}
            isReadOnly={isReadOnly}
            onChange={(html) => onChange({ ...block, html })}
          />
          <Group>{align(block.align)}</Group>
        </>
      )
    case 'image':
      return (
        <>
          {line('Address of the image', 'src', {
            value: block.src,
            description: 'Where mail programs load it from, by https.',
            error: block.src === '' && 'Is needed: without an address there is no image',
          })}
          {line('Description', 'alt', { value: block.alt, description: 'Shown and read aloud in place of the image.' })}
          {line('Leads to', 'href', { value: block.href, description: 'May be empty.' })}
          {line('Width in pixels', 'width', {
            value: block.width,
            description: 'Empty: as wide as the message.',
            isNumber: true,
          })}
        </>
      )
    case 'button':
      return (
        <>
          {line('Label', 'text', { value: block.text })}
          {line('Leads to', 'href', { value: block.href })}
          <Group>{align(block.align)}</Group>
        </>
      )
    case 'space':
      return line('Height in pixels', 'height', { value: block.height, isNumber: true })
    case 'divider':
      return null
  }
}
