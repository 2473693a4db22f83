import { Button, ColorInput, Group, Stack, Textarea, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import type { Result } from '../../api/client.ts'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import '../../styles/editor.css'
import { PreferencesLook } from './preferences-look.tsx'

type Brand = Result<'GET /v1/account/brand'>

/** How the page looks on which readers choose what they get. */
export function BrandScreen() {
  const query = useGet('GET /v1/account/brand', {})
  return (
    <Screen
      title="Brand"
      subtitle="How the page behind the link to unsubscribe looks. Links that were sent before show it too."
    >
      <Loaded query={query} what="brand">
        {(brand) => <Editor brand={brand} />}
      </Loaded>
    </Screen>
  )
}

function Editor({ brand }: { brand: Brand }) {
  const { can, mode } = useScope()
  const update = useChange('PATCH /v1/account/brand')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { name: brand.name ?? '', accentColor: brand.accentColor ?? '', text: brand.text ?? '' },
    send: async ({ name, accentColor, text }) => {
      await update.mutateAsync({ body: { name: orNull(name), accentColor: orNull(accentColor), text: orNull(text) } })
      notifications.show({ message: 'The brand was saved.' })
    },
  })
  const isLive = mode === 'live'
  const isReadOnly = !isLive || !can('topics:write')
  return (
    <div className="editor">
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          {!isLive && <p className="dimmed note">Both modes share it. It is changed in live mode.</p>}
          <TextInput
            label="Name"
            description="Who writes, as people know you. May be empty."
            maxLength={100}
            readOnly={isReadOnly}
            {...form.getInputProps('name')}
          />
          <ColorInput
            label="Color of buttons"
            description="Their text is black or white, whichever is easier to read on it. Empty: a dark gray."
            placeholder="#222222"
            format="hex"
            readOnly={isReadOnly}
            withEyeDropper={false}
            {...form.getInputProps('accentColor')}
          />
          <Textarea
            label="Text above the preferences"
            description="May be empty."
            maxLength={500}
            autosize
            minRows={3}
            maxRows={10}
            readOnly={isReadOnly}
            {...form.getInputProps('text')}
          />
          {!isReadOnly && (
            <Group className="form-foot">
              <Button type="submit" loading={isRunning}>
                Save
              </Button>
            </Group>
          )}
        </Stack>
      </form>
      <section aria-label="Preview">
        <PreferencesLook {...form.values} />
      </section>
    </div>
  )
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}
