import { DeleteByName } from '../../components/delete-by-name.tsx'
import type { Audience } from './audience.ts'

type Props = {
  audience: Audience
  /** The screen that is shown when it is deleted. Default: the same. */
  leadsTo?: string
  onClose: () => void
}

export function DeleteAudience({ audience: { id, name }, ...rest }: Props) {
  return (
    <DeleteByName operation="DELETE /v1/audiences/:id" input={{ params: { id } }} what="audience" name={name} {...rest}>
      All its contacts are deleted, and it is forgotten who unsubscribed from it. The subscribers stay. This cannot be
      undone.
    </DeleteByName>
  )
}
