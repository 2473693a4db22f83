import {
  queryOptions,
  useInfiniteQuery,
  useMutation,
  useQueries,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { ApiError, Input, Operation, Result } from './client.ts'
import { callForUser } from './query-client.ts'
import { useScope } from './scope.tsx'

type Reading = Extract<Operation, `GET ${string}`>

/** The operations that return pages. */
type Listing = { [K in Reading]: Result<K> extends { data: unknown[]; nextCursor: string | null } ? K : never }[Reading]

export type RowOf<K extends Listing> = Result<K> extends { data: (infer Row)[] } ? Row : never

type GetOptions<K extends Reading> = {
  /** Milliseconds to the next request, or false for none. Default: none. */
  pollMs?: (data: Result<K> | undefined) => number | false
  enabled?: boolean
}

/** Reads one object. */
export function useGet<K extends Reading>(operation: K, input: Input<K>, options: GetOptions<K> = {}) {
  const { accountId, mode, call } = useScope()
  const { pollMs, enabled = true } = options
  const query = useQuery<Result<K>, ApiError>({
    queryKey: [accountId, mode, operation, input],
    queryFn: () => call(operation, input),
    enabled,
    ...(pollMs && { refetchInterval: (latest) => pollMs(latest.state.data) }),
  })
  useRefusalCheck(query.error)
  return query
}

/** Reads several objects by one operation. */
export function useGetEach<K extends Reading>(operation: K, inputs: readonly Input<K>[]) {
  const { accountId, mode, call } = useScope()
  return useQueries({
    queries: inputs.map((input) =>
      queryOptions<Result<K>, ApiError>({
        queryKey: [accountId, mode, operation, input],
        queryFn: () => call(operation, input),
      }),
    ),
  })
}

/** How long what is there waits for the rest. Milliseconds. */
const patienceMs = 5_000

/**
 * Returns true until none of these requests is under way for the first time, so that what they bring in does not move
 * what is shown, but for 5 seconds at most: a request that hangs keeps nothing else from the screen.
 */
export function useFirstReading(queries: readonly { isLoading: boolean }[]): boolean {
  const [isReading, setReading] = useState(true)
  useEffect(() => {
    const timer = setTimeout(() => setReading(false), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  const isFirst = isReading && queries.some(({ isLoading }) => isLoading)
  if (isReading && !isFirst) setReading(false)
  return isFirst
}

/** One page after the other of a list. */
export type List<Row> = {
  /** Undefined: not read yet. */
  rows: Row[] | undefined
  /** Of the last request. The rows of earlier ones stay. */
  error: ApiError | null
  hasMore: boolean
  isLoadingMore: boolean
  /** Whether pages are read that had no rows yet: the API looks at a bounded number for each. */
  isLooking: boolean
  loadMore: () => void
  /** Repeats the request that failed. */
  retry: () => void
  /** Reads all pages that are shown again. */
  reload: () => void
}

const pageLimit = 50
/** Pages without rows that are read one after the other before the reader is asked. */
const emptyPages = 20

type ListOptions = {
  /** Milliseconds to the next look for new rows, while no further page is shown and the window is. Default: none. */
  pollMs?: number | undefined
  /** Whether no page is read again while the list is shown, after a change neither. Default: they are. */
  isReadOnce?: boolean
}

/** Reads a list page by page. */
export function useList<K extends Listing>(
  operation: K,
  input: Input<K>,
  { pollMs, isReadOnce = false }: ListOptions = {},
): List<RowOf<K>> {
  const { accountId, mode } = useScope()
  const read = useInfiniteQuery({
    ...usePaging(operation, input, pageLimit),
    // Without a time in the cache, where nothing would say that it is of before a change.
    ...(isReadOnce && { staleTime: 'static', gcTime: 0 }),
    // While a filter changes, the rows stay. Those of another account or mode must not.
    placeholderData: (rows, query) =>
      query?.queryKey[0] === accountId && query.queryKey[1] === mode ? rows : undefined,
    // Of one page alone: to read all pages again would grow with what is shown.
    refetchInterval: (latest: WithPages) =>
      pollMs === undefined || (latest.state.data?.pages.length ?? 0) > 1 ? false : pollMs,
  })
  const error = read.error as ApiError | null
  useRefusalCheck(error)
  const { hasNextPage, isFetching, fetchNextPage, isPlaceholderData } = read
  const loadMore = () => void fetchNextPage()
  const reload = () => void read.refetch()
  const pages = read.data?.pages ?? []
  const isLooking =
    hasNextPage &&
    !isPlaceholderData &&
    error === null &&
    pages.length % emptyPages !== 0 &&
    pages.every((page) => page.data.length === 0)
  useEffect(() => {
    if (isLooking && !isFetching) void fetchNextPage()
  }, [isLooking, isFetching, fetchNextPage])
  return {
    rows: isLooking ? undefined : read.data?.pages.flatMap((page) => page.data),
    error,
    hasMore: read.hasNextPage,
    isLoadingMore: read.isFetchingNextPage,
    isLooking,
    loadMore,
    retry: read.isFetchNextPageError ? loadMore : reload,
    reload,
  }
}

/** What a field offers for choice, newest first. */
export type Choices<Row> = {
  /** Undefined: not all that are offered are read yet. */
  data: Row[] | undefined
  /** Whether there are more than these: above 1,000, or where a further request failed. */
  hasMore: boolean
  error: ApiError | null
  isLoading: boolean
  /** Reads them again. */
  refetch: () => void
}

const choicesLimit = 100
const mostChoices = 1_000

/** Reads what a field offers for choice: the newest 1,000, in as many requests as that takes. */
export function useChoices<K extends Listing>(
  operation: K,
  input: Input<K>,
  { enabled = true }: { enabled?: boolean } = {},
): Choices<RowOf<K>> {
  const paging = usePaging(operation, input, choicesLimit)
  const read = useInfiniteQuery({ ...paging, queryKey: [...paging.queryKey, 'choices'], enabled })
  const error = read.error as ApiError | null
  useRefusalCheck(error)
  const { hasNextPage, isFetching, fetchNextPage } = read
  const pages = read.data?.pages ?? []
  const isReadOn = hasNextPage && error === null && pages.length * choicesLimit < mostChoices
  useEffect(() => {
    if (isReadOn && !isFetching) void fetchNextPage()
  }, [isReadOn, isFetching, fetchNextPage])
  return {
    // All at once, so that what is below does not move with each request.
    data: isReadOn ? undefined : read.data?.pages.flatMap((page) => page.data),
    hasMore: hasNextPage,
    error,
    isLoading: read.isLoading || isReadOn,
    refetch: () => void read.refetch(),
  }
}

/** How the pages of a list are read one after the other. */
function usePaging<K extends Listing>(operation: K, input: Input<K>, limit: number) {
  const { accountId, mode, call } = useScope()
  const { query } = input as { query?: object }
  return {
    queryKey: [accountId, mode, operation, input],
    queryFn: ({ pageParam }: { pageParam: string | null }) => {
      const page = { limit, ...query, ...(pageParam !== null && { cursor: pageParam }) }
      return call(operation, { ...input, query: page } as unknown as Input<K>) as Promise<PageOf<RowOf<K>>>
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page: PageOf<RowOf<K>>) => page.nextCursor,
  }
}

type WithPages = { state: { data?: { pages: readonly unknown[] } | undefined } }
type PageOf<Row> = { data: Row[]; nextCursor: string | null }

function useRefusalCheck(error: ApiError | null): void {
  const { onRefused } = useScope()
  useEffect(() => {
    if (error !== null) onRefused(error)
  }, [error, onRefused])
}

/** Reads again what these operations return each time `value` changes. */
export function useReadAgain(value: unknown, operations: readonly Reading[]): void {
  const { accountId, mode } = useScope()
  const client = useQueryClient()
  const last = useRef(value)
  useEffect(() => {
    if (last.current === value) return
    last.current = value
    for (const operation of operations) {
      const of = { queryKey: [accountId, mode, operation] }
      // A first request is not sent again while it is under way.
      void client.cancelQueries(of).then(() => client.invalidateQueries(of))
    }
  }, [value, operations, accountId, mode, client])
}

/** Changes something, and reads again what the screens of this account show. */
export function useChange<K extends Operation>(operation: K) {
  const { accountId, call, onRefused } = useScope()
  const client = useQueryClient()
  return useMutation<Result<K>, ApiError, Input<K>>({
    mutationFn: (input) => call(operation, input),
    onSuccess: () => client.invalidateQueries({ queryKey: [accountId] }),
    onError: onRefused,
  })
}

/** Changes something of the user, outside of an account. */
export function useUserChange<K extends Operation>(operation: K) {
  return useMutation<Result<K>, ApiError, Input<K>>({
    mutationFn: (input) => callForUser(operation, input),
  })
}
