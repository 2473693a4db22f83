import { Button, Group, Popover, TextInput } from '@mantine/core'
import { RichTextEditor, useRichTextEditorContext } from '@mantine/tiptap'
import { IconLink } from '@tabler/icons-react'
import { useState } from 'react'

/** Makes what is selected a link, or gives the link at the cursor another address. */
export function LinkControl() {
  const { editor } = useRichTextEditorContext()
  const [isOpen, setOpen] = useState(false)
  const [href, setHref] = useState('')
  const [error, setError] = useState<string | null>(null)

  function open(): void {
    const { href: before } = editor?.getAttributes('link') ?? {}
    setHref(typeof before === 'string' ? before : '')
    setError(null)
    setOpen(true)
  }

  function set(): void {
    const isSet = editor?.chain().focus().extendMarkRange('link').setLink({ href: href.trim() }).run()
    if (isSet && href.trim() !== '') setOpen(false)
    else setError('Must be an address such as https://example.com, or Liquid')
  }

  return (
    <Popover opened={isOpen} onChange={setOpen} trapFocus position="bottom-start">
      <Popover.Target>
        <RichTextEditor.Control
          aria-label="Link"
          title="Link"
          active={editor?.isActive('link') ?? false}
          onClick={open}
        >
          <IconLink size={16} stroke={1.5} aria-hidden />
        </RichTextEditor.Control>
      </Popover.Target>
      <Popover.Dropdown aria-label="Link">
        <Group align="flex-end" gap="xs">
          <TextInput
            label="Leads to"
            data-autofocus
            value={href}
            error={error}
            onChange={({ currentTarget }) => setHref(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return
              event.preventDefault()
              set()
            }}
          />
          <Button onClick={set}>Set</Button>
        </Group>
      </Popover.Dropdown>
    </Popover>
  )
}
