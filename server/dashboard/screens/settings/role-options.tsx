import { Radio, Stack } from '@mantine/core'
import type { Role } from '../../../../contract/roles.ts'
import { roleLabels, rolesGivenBy } from './roles.ts'

/** The roles that a member with the role `by` may give, inside a Radio.Group. */
export function RoleOptions({ by }: { by: Role }) {
  return (
    <Stack gap="xs" mt="xs">
      {rolesGivenBy(by).map((role) => (
        <Radio key={role} value={role} label={roleLabels[role].label} description={roleLabels[role].description} />
      ))}
    </Stack>
  )
}
