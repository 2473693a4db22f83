import '../../styles/blocks.css'
import { ActionIcon, Button, Group, Input, Menu, Stack, Text, TextInput } from '@mantine/core'
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from '@tabler/icons-react'
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import type { CodeFault } from '../code-field.tsx'
import { Confirm } from '../confirm.tsx'
import { BlockFields } from './block-fields.tsx'
import {
  type Block,
  type BlockKind,
  type BlockMessage,
  blockLimit,
  blockOnLine,
  blocksOfMjml,
  firstMjml,
  mjmlOfBlocks,
  newBlocks,
} from './mail-blocks.ts'

type Props = {
  /** MJML. */
  value: string
  onChange: (mjml: string) => void
  description: string
  /** Why the message is refused. */
  error: ReactNode
  faults: readonly CodeFault[]
  isReadOnly: boolean
}

const labels: Record<BlockKind, string> = {
  heading: 'Heading',
  text: 'Text',
  image: 'Image',
  button: 'Button',
  divider: 'Divider',
  space: 'Space',
}
const kinds = Object.keys(labels) as BlockKind[]

/** Blocks with keys of their own, so that what is moved stays what it is. */
type Keyed = Omit<BlockMessage, 'blocks'> & { blocks: readonly { key: number; block: Block }[] }

let lastKey = 0
const keyed = (block: Block) => ({ key: ++lastKey, block })

function keyedOf(mjml: string): Keyed | null {
  const message = blocksOfMjml(mjml)
  return message && { ...message, blocks: message.blocks.map(keyed) }
}

const messageOf = ({ blocks, ...rest }: Keyed): BlockMessage => ({ ...rest, blocks: blocks.map(({ block }) => block) })

/** A message as a list of blocks. MJML that was not made of blocks is not shown: they would drop what they do not know. */
export function BlocksField({ value, onChange, description, error, faults, isReadOnly }: Props) {
  const [written, setWritten] = useState(() => ({ mjml: value, message: keyedOf(value) }))
  if (written.mjml !== value) setWritten({ mjml: value, message: keyedOf(value) })
  const [isReplacing, setReplacing] = useState(false)
  const { message } = written
  function change(next: Keyed): void {
    const mjml = mjmlOfBlocks(messageOf(next))
    setWritten({ mjml, message: next })
    onChange(mjml)
  }
  if (message === null) {
    return (
      <Stack gap="xs" align="flex-start">
        <Text>This MJML has more than blocks can show. Edit it as MJML, or replace it by a new message of blocks.</Text>
        {error != null && <Input.Error role="alert">{error}</Input.Error>}
        <Faults of={faults} />
        {!isReadOnly && (
          <Button variant="default" onClick={() => setReplacing(true)}>
            Replace it
          </Button>
        )}
        {isReplacing && (
          <Confirm
            title="Replace the MJML?"
            action="Replace it"
            isRunning={false}
            error={null}
            onClose={() => setReplacing(false)}
            onConfirm={() => {
              setReplacing(false)
              onChange(firstMjml)
            }}
          >
            A new message of blocks takes its place. The MJML cannot be brought back.
          </Confirm>
        )}
      </Stack>
    )
  }
  return (
    <Input.Wrapper label="Blocks" labelElement="div" description={description} error={error}>
      <Blocks message={message} onChange={change} faults={faults} isReadOnly={isReadOnly} />
    </Input.Wrapper>
  )
}

type BlocksProps = Pick<Props, 'faults' | 'isReadOnly'> & { message: Keyed; onChange: (message: Keyed) => void }

function Blocks({ message, onChange, faults, isReadOnly }: BlocksProps) {
  const { blocks } = message
  const [told, setTold] = useState('')
  const whole = useRef<HTMLDivElement>(null)
  /** The CSS selector of the element that gets the focus after a change. Null: the focus is not moved. */
  const focused = useRef<string | null>(null)
  useLayoutEffect(() => {
    if (focused.current === null) return
    whole.current?.querySelector<HTMLElement>(focused.current)?.focus()
    focused.current = null
  })
  const set = (next: Keyed['blocks']) => onChange({ ...message, blocks: next })
  const faultsAt = (index: number | undefined) =>
    faults.filter(({ line }) => blockOnLine(messageOf(message), line) === index)

  function move(index: number, to: number): void {
    const moved = blocks[index]
    if (moved === undefined || to < 0 || to >= blocks.length) return
    focused.current = `[data-block="${moved.key}"] [data-move="${to < index ? 'up' : 'down'}"]`
    setTold(`${labels[moved.block.kind]}: ${to + 1} of ${blocks.length}`)
    set(blocks.toSpliced(index, 1).toSpliced(to, 0, moved))
  }

  function add(kind: BlockKind): void {
    const added = keyed(newBlocks[kind])
    focused.current = `[data-block="${added.key}"]`
    setTold(`${labels[kind]} added`)
    set([...blocks, added])
  }

  function remove(index: number): void {
    const next = blocks[index + 1] ?? blocks[index - 1]
    focused.current = next === undefined ? '[data-add]' : `[data-block="${next.key}"]`
    setTold('Removed')
    set(blocks.toSpliced(index, 1))
  }

  return (
    <Stack gap="xs" mt="xs" ref={whole}>
      <Faults of={faultsAt(undefined)} />
      {blocks.length === 0 && <Text c="dimmed">There is no block yet: the message is empty.</Text>}
      <ol className="blocks">
        {blocks.map(({ key, block }, index) => {
          const name = `${labels[block.kind]}, ${index + 1} of ${blocks.length}`
          return (
            <li key={key} data-block={key} aria-label={name} tabIndex={-1}>
              <Group justify="space-between" gap="xs">
                <span className="block-kind">{labels[block.kind]}</span>
                {!isReadOnly && (
                  <Group gap={4}>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      data-move="up"
                      aria-disabled={index === 0}
                      aria-label={`Move up: ${name}`}
                      onClick={() => move(index, index - 1)}
                    >
                      <IconArrowUp size={16} aria-hidden />
                    </ActionIcon>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      data-move="down"
                      aria-disabled={index === blocks.length - 1}
                      aria-label={`Move down: ${name}`}
                      onClick={() => move(index, index + 1)}
                    >
                      <IconArrowDown size={16} aria-hidden />
                    </ActionIcon>
                    <ActionIcon
                      variant="subtle"
                      color="red.8"
                      aria-label={`Remove: ${name}`}
                      onClick={() => remove(index)}
                    >
                      <IconTrash size={16} aria-hidden />
                    </ActionIcon>
                  </Group>
                )}
              </Group>
              <BlockFields
                block={block}
                isReadOnly={isReadOnly}
                onChange={(changed) => set(blocks.with(index, { key, block: changed }))}
              />
              <Faults of={faultsAt(index)} />
            </li>
          )
        })}
      </ol>
      <output className="visually-hidden">{told}</output>
      {!isReadOnly && (
        <Group gap="xs" align="flex-end">
          <Menu position="bottom-start" returnFocus={false}>
            <Menu.Target>
              <Button
                variant="default"
                data-add
                leftSection={<IconPlus size={16} aria-hidden />}
                disabled={blocks.length >= blockLimit}
              >
                {blocks.length < blockLimit ? 'Add block' : `No more than ${blockLimit} blocks`}
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {kinds.map((kind) => (
                <Menu.Item key={kind} onClick={() => add(kind)}>
                  {labels[kind]}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
          <TextInput
            type="color"
            label="Background"
            className="color-input"
            value={message.background}
            onChange={({ currentTarget }) => onChange({ ...message, background: currentTarget.value })}
          />
          <TextInput
            type="color"
            label="Buttons"
            className="color-input"
            value={message.buttonColor}
            onChange={({ currentTarget }) => onChange({ ...message, buttonColor: currentTarget.value })}
          />
        </Group>
      )}
    </Stack>
  )
}

function Faults({ of }: { of: readonly CodeFault[] }) {
  return of.map(({ line, message }) => (
    <Input.Error key={`${line} ${message}`} size="xs" role="alert">
      {message}
    </Input.Error>
  ))
}
