import { Button, Checkbox, Fieldset, Group, Input, NativeSelect, Stack, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { ReactNode } from 'react'
import {
  type AbTestValues,
  faultsAfter,
  newVariant,
  otherFaultsOf,
  pathOf,
  type VariantValues,
  variantCounts,
} from './ab-test-values.ts'
import { VariantFields } from './ab-test-variant.tsx'
import type { CampaignValues } from './campaign-values.ts'

const winners = [
  { value: 'opens', label: 'The most opens' },
  { value: 'clicks', label: 'The most clicks' },
  { value: 'manual', label: 'I choose it' },
]

/** Variants of the message, who gets them, and how the winner is chosen. */
export function AbTestFields({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { abTest } = form.values
  const { errors } = form
  function change(changes: Partial<AbTestValues>): void {
    const after = { ...abTest, ...changes }
    form.setErrors(faultsAfter(errors, abTest, after))
    form.setFieldValue('abTest', after)
  }
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
            {otherFaultsOf(abTest, errors).map((fault) => (
              <Input.Error key={fault} role="alert">
                {fault}
              </Input.Error>
            ))}
            <Variants
              variants={variants}
              errorOf={(number, field) => errors[`${pathOf(number)}.${field}`]}
              onChange={(changed) => change({ variants: changed })}
            />
            <TextInput
              label="Share of the people in the test"
              description="In percent, divided evenly. 100: everybody, and no rest."
              inputMode="numeric"
              value={share}
              error={errors['abTest.share']}
              onChange={(event) => change({ share: event.currentTarget.value })}
            />
            <NativeSelect
              label="The winner has"
              description={neededFor[winnerBy]}
              data={winners}
              value={winnerBy}
              error={errors['abTest.winnerBy']}
              onChange={(event) => change({ winnerBy: event.currentTarget.value as AbTestValues['winnerBy'] })}
            />
            {winnerBy !== 'manual' && (
              <TextInput
                label="Hours until the winner is chosen"
                description="From the last email of the test on, at most 168."
                inputMode="numeric"
                value={hours}
                error={errors['abTest.hours']}
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

type VariantsProps = {
  variants: VariantValues[]
  /** Returns what is wrong with a field of a variant. `number`: from 0. */
  errorOf: (number: number, field: string) => ReactNode
  onChange: (variants: VariantValues[]) => void
}

function Variants({ variants, errorOf, onChange }: VariantsProps) {
  const replace = (number: number, changes: Partial<VariantValues>) =>
    onChange(variants.map((variant, index) => (index === number ? { ...variant, ...changes } : variant)))
  return (
    <>
      {variants.map((variant, number) => (
        <VariantFields
          key={variant.key}
          number={number + 1}
          variant={variant}
          errorOf={(field) => errorOf(number, field)}
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
