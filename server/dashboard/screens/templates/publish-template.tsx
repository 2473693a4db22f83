import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import type { Template } from './template.ts'

/** Asks whether emails are to get the draft. */
export function PublishTemplate({ template, onClose }: { template: Template; onClose: () => void }) {
  const { id, name, publishedVersion } = template
  const publish = useChange('POST /v1/templates/:id/publish')
  const next = (publishedVersion ?? 0) + 1
  return (
    <Confirm
      title={`Publish ${name}?`}
      action={`Publish version ${next}`}
      isHarmless
      isRunning={publish.isPending}
      error={publish.error}
      onClose={onClose}
      onConfirm={() =>
        publish.mutate(
          { params: { id }, body: {} },
          {
            onSuccess: ({ publishedVersion: version }) => {
              notifications.show({ message: `Emails get version ${version} of ${name} from now on.` })
              onClose()
            },
          },
        )
      }
    >
      {publishedVersion === null
        ? 'Emails can be sent with it from then on. '
        : `Emails that name it get version ${next} from then on, in place of version ${publishedVersion}. `}
      A version never changes: what you write later is a draft again until you publish it.
    </Confirm>
  )
}
