import { Button, Skeleton, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { SegmentCondition } from '../../../../contract/segment-conditions.ts'
import type { ApiError, Result } from '../../api/client.ts'
import { useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { DataTable, PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { personColumns } from '../people/person-columns.tsx'

export type Preview = Result<'POST /v1/segments/preview'>

/** Milliseconds without a change before the people are counted. */
const waitMs = 500

/**
 * Counts the people whom conditions choose, and shows some of them.
 *
 * @param conditions As JSON, so that the same conditions are counted once. Null: they are not complete.
 */
export function usePreview(audienceId: string, conditions: string | null) {
  const { accountId, mode, call, onRefused } = useScope()
  const [settled] = useDebouncedValue(conditions, waitMs)
  const query = useQuery<Preview, ApiError>({
    queryKey: [accountId, mode, 'POST /v1/segments/preview', audienceId, settled],
    queryFn: () => {
      const parsed: SegmentCondition = JSON.parse(settled ?? 'null')
      return call('POST /v1/segments/preview', { body: { audienceId, conditions: parsed } })
    },
    enabled: settled !== null && audienceId !== '',
    // While the next is counted, the last one stays.
    placeholderData: (last) => last,
  })
  const { error } = query
  useEffect(() => {
    if (error !== null) onRefused(error)
  }, [error, onRefused])
  return { ...query, isSettled: settled === conditions && !query.isFetching }
}

type Props = {
  preview: ReturnType<typeof usePreview>
  isComplete: boolean
  /** Whether what is wrong is told at the conditions. */
  isFaultShown: boolean
  /** The segment that is stored with these conditions. Undefined: there is none. */
  storedId: string | undefined
}

const number = new Intl.NumberFormat()
const columns = personColumns<Preview['contacts'][number]>(({ subscriberId }) => subscriberId)
const keyOf = ({ subscriberId }: Preview['contacts'][number]) => subscriberId

/** How many people match, and the first of them. */
export function SegmentPreview({ preview, isComplete, isFaultShown, storedId }: Props) {
  const { data, error, isSettled, refetch } = preview
  if (!isComplete) return <Text c="dimmed">Fill in every condition, and the people are counted.</Text>
  if (error !== null && isFaultShown) {
    return <Text c="dimmed">Correct the conditions, and the people are counted.</Text>
  }
  const notice = error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />
  if (error !== null && data === undefined) return notice
  return (
    <>
      {notice}
      <p className="segment-count" aria-live="polite" data-settled={isSettled}>
        {data === undefined ? <Skeleton height={24} width={200} /> : <Count of={data} />}
      </p>
      {data !== undefined && (data.count > 0 || data.contacts.length > 0 || data.isEstimate) && (
        <People key={storedId} preview={data} storedId={storedId} />
      )}
    </>
  )
}

function Count({ of: { count, isEstimate } }: { of: Preview }) {
  if (isEstimate && count === 0) {
    return (
      <>
        <strong>None in the sample</strong>
        <span className="dimmed"> Only a sample of the contacts was looked at.</span>
      </>
    )
  }
  const people = count === 1 ? '1 person matches' : `${number.format(count)} people match`
  return (
    <>
      <strong>{isEstimate ? `About ${people}` : people}</strong>
      {isEstimate && <span className="dimmed"> Estimated from a sample of the contacts.</span>}
    </>
  )
}

/** The first of the people, and all of them where the reader asks for them. */
function People({ preview, storedId }: { preview: Preview; storedId: string | undefined }) {
  const [isWhole, setWhole] = useState(false)
  const frame = useRef<HTMLElement>(null)
  function showAll(): void {
    setWhole(true)
    // The button goes.
    frame.current?.focus({ preventScroll: true })
  }
  return (
    <section ref={frame} tabIndex={-1} aria-label="Who matches">
      {isWhole && storedId !== undefined ? (
        <AllPeople id={storedId} first={preview.contacts} />
      ) : (
        <FirstPeople preview={preview} isStored={storedId !== undefined} onShowAll={showAll} />
      )}
    </section>
  )
}

type FirstProps = { preview: Preview; isStored: boolean; onShowAll: () => void }

function FirstPeople({ preview: { count, isEstimate, contacts }, isStored, onShowAll }: FirstProps) {
  const hasMore = isEstimate || count > contacts.length
  return (
    <>
      {contacts.length > 0 ? (
        <PlainTable label="Some of the people" rows={contacts} columns={columns} keyOf={keyOf} />
      ) : (
        <Text c="dimmed">None of the newest 10,000 contacts matches, so none is shown.</Text>
      )}
      {hasMore && isStored && (
        <Button variant="default" mt="md" onClick={onShowAll}>
          Show all
        </Button>
      )}
      {hasMore && !isStored && (
        <Text c="dimmed" mt="md">
          Save the segment to list all of them.
        </Text>
      )}
    </>
  )
}

/**
 * The people of a stored segment, page by page. `first` stand there until the first page is read. A page may take the
 * database a while: they are not read again behind the reader's back.
 */
function AllPeople({ id, first }: { id: string; first: Preview['contacts'] }) {
  const list = useList('GET /v1/segments/:id/contacts', { params: { id } }, { isReadOnce: true })
  const isReading = list.rows === undefined && list.error === null && first.length > 0
  return (
    <DataTable
      label="People of the segment"
      list={isReading ? { ...list, rows: first, hasMore: true, isLoadingMore: true, isLooking: false } : list}
      columns={columns}
      keyOf={keyOf}
      empty={<Text c="dimmed">Nobody matches any more.</Text>}
    />
  )
}
