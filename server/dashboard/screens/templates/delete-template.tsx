import { DeleteByName } from '../../components/delete-by-name.tsx'
import type { TemplateSummary } from './template.ts'

type Props = {
  template: TemplateSummary
  /** The screen that is shown when it is deleted. Default: the same. */
  leadsTo?: string
  onClose: () => void
}

export function DeleteTemplate({ template: { id, name }, ...rest }: Props) {
  return (
    <DeleteByName operation="DELETE /v1/templates/:id" input={{ params: { id } }} what="template" name={name} {...rest}>
      It is deleted with its versions, and emails that name it are refused from now on. Emails that were made of it
      stay. This cannot be undone.
    </DeleteByName>
  )
}
