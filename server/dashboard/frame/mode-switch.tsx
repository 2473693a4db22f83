import { SegmentedControl } from '@mantine/core'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'

/** Switches between live and test. Keeps the list that is shown, and leaves a detail, which the other mode lacks. */
export function ModeSwitch() {
  const { mode, account } = useScope()
  const { pathname } = useLocation()
  const navigate = useNavigate()
  const [, , , first = 'overview', second] = pathname.split('/')
  const screen = first === 'settings' && second !== undefined ? `settings/${second}` : first
  return (
    <SegmentedControl
      fullWidth
      size="xs"
      mt="xs"
      className="mode-switch"
      data-mode={mode}
      aria-label="Mode"
      value={mode}
      onChange={(to) => void navigate({ to: `/${account.id}/${to}/${screen}` })}
      data={[
        { label: 'Live', value: 'live' },
        { label: 'Test', value: 'test' },
      ]}
    />
  )
}
