import { Button, Checkbox, Fieldset, Group, Input, NativeSelect, Stack, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { CodeField } from '../../components/code-field.tsx'
import { MarkupField } from '../../components/markup-field.tsx'
import { type AbTestValues, newVariant, type VariantValues, variantCounts } from './ab-test-values.ts'
import type { CampaignValues } from './campaign-values.ts'

const winners = [
  { value: 'opens', label: 'The most opens' },
  { value: 'clicks', label: 'The most clicks' },
  { value: 'manual', label: 'I choose it' },
]

/** Variants of the message, who gets them, and how the winner is chosen. */
export function AbTestFields({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { abTest } = form.values
  const change = (changes: Partial<AbTestValues>) => form.setFieldValue('abTest', { ...abTest, ...changes })
  const { isOn, share, winnerBy, hours, variants } = abTest
  return (
    <Fieldset legend="A/B test" variant="unstyled">
      <Stack mt="xs">
        <Checkbox
          label="Try variants of the message first"
          description="A share of the people gets them. The one that does best goes to the rest."
          checked={isOn}
          onChange={(event) => change({ isOn: event.currentTarget.checked })}
        />
        {isOn && (
          <>
            {form.errors.abTest != null && <Input.Error role="alert">{form.errors.abTest}</Input.Error>}
            <Variants variants={variants} onChange={(changed) => change({ variants: changed })} />
            <TextInput
              label="Share of the people in the test"
              description="In percent, divided evenly. 100: everybody, and no rest."
              inputMode="numeric"
              value={share}
              onChange={(event) => change({ share: event.currentTarget.value })}
            />
            <NativeSelect
              label="The winner has"
              description={neededFor[winnerBy]}
              data={winners}
              value={winnerBy}
              onChange={(event) => change({ winnerBy: event.currentTarget.value as AbTestValues['winnerBy'] })}
            />
            {winnerBy !== 'manual' && (
              <TextInput
                label="Hours until the winner is chosen"
                description="From the last email of the test on, at most 168."
                inputMode="numeric"
                value={hours}
                onChange={(event) => change({ hours: event.currentTarget.value })}
              />
            )}
          </>
        )}
      </Stack>
    </Fieldset>
  )
}

const neededFor: Readonly<Record<AbTestValues['winnerBy'], string>> = {
  opens: 'The largest share of its people, without machines. Needs “Track opens”.',
  clicks: 'The largest share of its people, without machines. Needs “Track clicks”.',
  manual: 'The rest waits until you choose, on the screen of the campaign.',
}

type VariantsProps = { variants: VariantValues[]; onChange: (variants: VariantValues[]) => void }

function Variants({ variants, onChange }: VariantsProps) {
  const replace = (number: number, changes: Partial<VariantValues>) =>
    onChange(variants.map((variant, index) => (index === number ? { ...variant, ...changes } : variant)))
  return (
    <>
      {variants.map((variant, number) => (
        <VariantFields
          key={variant.key}
          number={number + 1}
          variant={variant}
          onChange={(changes) => replace(number, changes)}
          {...(variants.length > variantCounts.min && {
            onRemove: () => onChange(variants.filter((_, index) => index !== number)),
          })}
        />
      ))}
      {variants.length < variantCounts.max && (
        <Group>
          <Button variant="default" size="xs" onClick={() => onChange([...variants, newVariant(variants.length)])}>
            Add a variant
          </Button>
        </Group>
      )}
    </>
  )
}

type VariantProps = {
  /** From 1. */
  number: number
  variant: VariantValues
  onChange: (changes: Partial<VariantValues>) => void
  onRemove?: () => void
}

function VariantFields({ number, variant, onChange, onRemove }: VariantProps) {
  const { name, subject, hasContent, preheader, format, html, mjml, text } = variant
  return (
    <Fieldset legend={`Variant ${number}`}>
      <Stack>
        <TextInput
          label="Name"
          required
          maxLength={50}
          value={name}
          onChange={(event) => onChange({ name: event.currentTarget.value })}
        />
        <TextInput
          label="Subject"
          description="Empty: that of the campaign."
          value={subject}
          onChange={(event) => onChange({ subject: event.currentTarget.value })}
        />
        <Checkbox
          label="A message of its own"
          checked={hasContent}
          onChange={(event) => onChange({ hasContent: event.currentTarget.checked })}
        />
        {hasContent && (
          <>
            <TextInput
              label="Preheader"
              value={preheader}
              onChange={(event) => onChange({ preheader: event.currentTarget.value })}
            />
            <MarkupField
              description="Liquid, as in the message of the campaign."
              value={{ format, html, mjml }}
              errors={{}}
              faults={{ html: [], mjml: [] }}
              onChange={onChange}
            />
            <CodeField
              label="Text"
              description="Empty: it is made from the HTML."
              rows={6}
              value={text}
              error={null}
              faults={[]}
              onChange={(value) => onChange({ text: value })}
            />
          </>
        )}
        {onRemove && (
          <Group>
            <Button variant="default" size="xs" onClick={onRemove}>
              Remove variant {number}
            </Button>
          </Group>
        )}
      </Stack>
    </Fieldset>
  )
}
