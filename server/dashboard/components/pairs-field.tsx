import { ActionIcon, Button, Group, Input, Stack, TextInput } from '@mantine/core'
import { IconX } from '@tabler/icons-react'

export type Pair = { name: string; value: string }

type Props = {
  label: string
  description: string
  pairs: readonly Pair[]
  error: React.ReactNode
  onChange: (pairs: Pair[]) => void
}

/** Names with a text each, in rows that are added and removed. */
export function PairsField({ label, description, pairs, error, onChange }: Props) {
  const change = (index: number, changed: Partial<Pair>) =>
    onChange(pairs.map((pair, at) => (at === index ? { ...pair, ...changed } : pair)))
  return (
    <Input.Wrapper
      component="fieldset"
      labelElement="div"
      label={label}
      description={description}
      error={error}
      p={0}
      bd={0}
    >
      <Stack gap="xs" mt={pairs.length > 0 ? 'xs' : 0}>
        {pairs.map(({ name, value }, index) => (
          // Rows are only added at the end, and an input keeps nothing of its own.
          // biome-ignore lint/suspicious/noArrayIndexKey: two rows may be alike.
          <Group key={index} gap="xs" wrap="nowrap">
            <TextInput
              flex={1}
              aria-label={`Name ${index + 1}`}
              placeholder="Name"
              value={name}
              spellCheck={false}
              onChange={(event) => change(index, { name: event.currentTarget.value })}
            />
            <TextInput
              flex={2}
              aria-label={`Value ${index + 1}`}
              placeholder="Value"
              value={value}
              onChange={(event) => change(index, { value: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove pair ${index + 1}`}
              onClick={() => onChange(pairs.filter((_, at) => at !== index))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
        ))}
        <Button
          size="compact-sm"
          variant="default"
          w="fit-content"
          onClick={() => onChange([...pairs, { name: '', value: '' }])}
        >
          Add a pair
        </Button>
      </Stack>
    </Input.Wrapper>
  )
}

/** Returns why the pairs cannot be sent, or null. */
export function faultOfPairs(pairs: readonly Pair[]): string | null {
  if (pairs.some(({ name }) => name === '')) return 'Each pair needs a name'
  return new Set(pairs.map(({ name }) => name)).size === pairs.length ? null : 'Two pairs have the same name'
}
