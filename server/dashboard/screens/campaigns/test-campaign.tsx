import { Button, Group, NativeSelect, Stack, Text, Textarea } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { CampaignDetails } from './campaign.ts'
import { linesOf } from './campaign-values.ts'
import { PersonField } from './person-field.tsx'
import type { ShownFor } from './use-campaign-rendering.ts'

const ofTest = {
  label: 'As for',
  description: 'Whose name and properties stand in it. Empty: the recipients of the test, with fallbacks.',
  placeholder: 'Search by address or name',
  clear: 'Choose nobody',
}

/** Sends the message to some addresses, then shows where to look for what became of it. */
export function TestCampaign({
  campaign: { id, abTest },
  onClose,
}: {
  campaign: CampaignDetails
  onClose: () => void
}) {
  const { session, mode, can } = useScope()
  const test = useChange('POST /v1/campaigns/:id/test')
  const [person, setPerson] = useState<ShownFor | null>(null)
  const [sent, setSent] = useState<{ to: string; emailId: string }[] | null>(null)
  const { form, ...sending } = useApiForm({
    initial: { to: session.user.email, subscriberId: '', variant: abTest?.variants[0]?.name ?? '' },
    send: async ({ subscriberId, variant, ...values }) => {
      const to = linesOf(values.to)
      const { emailIds } = await test.mutateAsync({
        params: { id },
        body: { to, ...(subscriberId !== '' && { subscriberId }), ...(variant !== '' && { variant }) },
      })
      setSent(emailIds.map((emailId, index) => ({ emailId, to: to[index] ?? '' })))
    },
  })
  if (sent !== null) {
    return (
      <Dialog title="The test was accepted" onClose={onClose}>
        <Stack>
          <Text>What became of it stands at each email:</Text>
          <ul className="links">
            {sent.map(({ to, emailId }) => (
              <li key={emailId}>
                <ScreenLink to={`/emails/${emailId}`}>{to}</ScreenLink>
              </li>
            ))}
          </ul>
          <Group justify="flex-end">
            <Button onClick={onClose}>Close</Button>
          </Group>
        </Stack>
      </Dialog>
    )
  }
  return (
    <FormDialog title="Send a test" action="Send the test" {...sending} onClose={onClose}>
      <Textarea
        label="To"
        description={
          mode === 'live'
            ? 'At most 10 addresses, one a line. They get it as it is now; it is not counted.'
            : 'At most 10 addresses, one a line. In test mode nothing leaves: the email is checked.'
        }
        autosize
        minRows={2}
        maxRows={10}
        required
        spellCheck={false}
        data-autofocus
        {...form.getInputProps('to')}
      />
      {abTest !== null && (
        <NativeSelect
          label="Variant"
          data={abTest.variants.map(({ name }) => name)}
          {...form.getInputProps('variant')}
        />
      )}
      {can('subscribers:read') && can('contacts:read') && (
        <PersonField
          person={person}
          onChoose={(chosen) => {
            setPerson(chosen)
            form.setFieldValue('subscriberId', chosen?.id ?? '')
          }}
          words={ofTest}
          error={form.errors.subscriberId}
        />
      )}
    </FormDialog>
  )
}
