import { Group, Text } from '@mantine/core'

/** The mark of Postern: a small gate within a larger arch. */
function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#3448c5" />
      <path d="M8 26V14a8 8 0 0 1 16 0v12" fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" />
      <path d="M12.4 26V14.4a3.6 3.6 0 0 1 3.6-3.6V26Z" fill="#fff" />
    </svg>
  )
}

export function Wordmark() {
  return (
    <Group gap="xs" wrap="nowrap">
      <Mark />
      <Text fz="lg" fw={650}>
        Postern
      </Text>
    </Group>
  )
}
