import { Anchor, Button, Group, Stack, Text } from '@mantine/core'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'

/** Shows a signing secret, which is shown only once. */
export function NewSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog size="lg" onClose={onClose} title="Copy the signing secret now" closeOnClickOutside={false}>
      <Stack>
        <Text>
          Your program checks with it that a request comes from here. It is shown only now. See{' '}
          <Anchor href="/docs" target="_blank">
            the API reference
          </Anchor>
          .
        </Text>
        <Copyable label="Copy the secret" value={secret} wraps />
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
