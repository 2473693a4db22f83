import { NativeSelect } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useChoices } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'
import type { CampaignValues } from './campaign-values.ts'

/** The input for the topic of a campaign. Not shown to users who may not read topics. */
export function TopicField({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { can } = useScope()
  const { topicId } = form.values
  const topics = useChoices('GET /v1/topics', { query: {} }, { enabled: can('topics:read') })
  if (!can('topics:read')) return null
  const options = topics.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []
  const isListed = topicId === '' || options.some(({ value }) => value === topicId)
  const fault = unread(topics, 'The topics')
  return (
    <NativeSelect
      label="Topic"
      description={
        topics.data?.length === 0 ? (
          <>
            There is no <ScreenLink to="/topics">topic</ScreenLink> yet: who unsubscribes leaves everything.
          </>
        ) : (
          `Who left the topic does not get it, and who unsubscribes leaves the topic alone. ${newestOffered(topics)}`
        )
      }
      data={[{ value: '', label: 'None' }, ...options, ...(isListed ? [] : [{ value: topicId, label: topicId }])]}
      {...form.getInputProps('topicId')}
      {...(fault !== null && { error: fault })}
    />
  )
}
