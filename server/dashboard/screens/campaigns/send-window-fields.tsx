import { Checkbox, Group, Input, Stack, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { CampaignValues } from './campaign-values.ts'
import { dayName, weekdays } from './send-window-values.ts'

/** The hours of the day in which a campaign sends. */
export function SendWindowFields({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { isOn } = form.values.sendWindow
  const { sendWindow: error } = form.errors
  return (
    <>
      <Checkbox
        label="Only at some hours of the day"
        description="Outside of them it rests. Emails that are tried again do not wait for them."
        {...form.getInputProps('sendWindow.isOn', { type: 'checkbox' })}
      />
      {isOn && (
        <Stack gap="xs">
          <Group grow align="start">
            <TextInput type="time" label="Sends from" required {...form.getInputProps('sendWindow.from')} />
            <TextInput
              type="time"
              label="Sends to"
              description="On the day after, if it is earlier."
              required
              {...form.getInputProps('sendWindow.to')}
            />
          </Group>
          <TextInput
            label="Zone of these hours"
            description="Such as Europe/Berlin."
            required
            spellCheck={false}
            {...form.getInputProps('sendWindow.timezone')}
          />
          <Checkbox.Group
            label="Days on which they begin"
            description="None: every day."
            {...form.getInputProps('sendWindow.days')}
          >
            <Group gap="xs" mt="xs">
              {weekdays.map((day) => (
                <Checkbox key={day} size="xs" value={day} label={dayName(day)} />
              ))}
            </Group>
          </Checkbox.Group>
          {error !== undefined && (
            <Input.Error size="xs" role="alert">
              {error}
            </Input.Error>
          )}
        </Stack>
      )}
    </>
  )
}
