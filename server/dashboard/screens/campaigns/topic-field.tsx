import { NativeSelect } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'
import type { CampaignValues } from './campaign-values.ts'

/** As many topics as one page of the API has. */
const offered = 100

/** The input for the topic of a campaign. Not shown to users who may not read topics. */
export function TopicField({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { can } = useScope()
  const { topicId } = form.values
  const query = useGet('GET /v1/topics', { query: { limit: offered } }, { enabled: can('topics:read') })
  const { data } = query
  if (!can('topics:read')) return null
  const options = data?.data.map(({ id, name }) => ({ value: id, label: name })) ?? []
  const isListed = topicId === '' || options.some(({ value }) => value === topicId)
  const fault = unread(query, 'The topics')
  const more = data?.nextCursor == null ? '' : ` The newest ${offered} are offered.`
  return (
    <NativeSelect
      label="Topic"
      description={
        data?.data.length === 0 ? (
          <>
            There is no <ScreenLink to="/topics">topic</ScreenLink> yet: who unsubscribes leaves everything.
          </>
        ) : (
          `Who left the topic does not get it, and who unsubscribes leaves the topic alone.${more}`
        )
      }
      data={[{ value: '', label: 'None' }, ...options, ...(isListed ? [] : [{ value: topicId, label: topicId }])]}
      {...form.getInputProps('topicId')}
      {...(fault !== null && { error: fault })}
    />
  )
}
