import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { followEvents, type LiveEvent, type LiveState } from '../../api/follow-events.ts'
import { checkSession } from '../../api/query-client.ts'
import { useScope } from '../../api/scope.tsx'

/** Live events that are kept on the screen. */
export const maxLiveEvents = 500
/** Milliseconds in which events are shown together, so that a thousand a second do not stop the browser. */
const togetherMs = 250

export type LiveEvents = {
  /** Newest first. */
  events: readonly LiveEvent[]
  /** Null: it is switched off. */
  state: LiveState | null
  error: ApiError | null
}

type Options = {
  isOn: boolean
  /** Default: all types. */
  type: string | undefined
  /** Where it begins: the id of the newest event of the list. Null: now. Undefined: not known yet. */
  startAfter: string | null | undefined
}

/** Follows events while `isOn`. Switched on again, it goes on after the last event, unless `type` has changed. */
export function useLiveEvents({ isOn, type, startAfter }: Options): LiveEvents {
  const { accountId, mode } = useScope()
  const [shown, setShown] = useState<{ key: string; events: readonly LiveEvent[] }>({ key: '', events: [] })
  const [state, setState] = useState<LiveState | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const key = [accountId, mode, type].join(' ')
  const last = useRef<{ key: string; id: string | null }>({ key: '', id: null })
  const start = useRef(startAfter)
  start.current = startAfter
  const isRunning = isOn && startAfter !== undefined

  useEffect(() => {
    if (!isRunning) return
    if (last.current.key !== key) last.current = { key, id: start.current ?? null }
    const stopping = new AbortController()
    let waiting: LiveEvent[] = []
    const show = () => {
      if (waiting.length === 0) return
      const next = waiting.toReversed()
      waiting = []
      setShown((before) => ({
        key,
        events: [...next, ...(before.key === key ? before.events : [])].slice(0, maxLiveEvents),
      }))
    }
    const timer = setInterval(show, togetherMs)
    setError(null)
    followEvents({
      scope: { accountId, mode },
      type,
      after: last.current.id,
      signal: stopping.signal,
      onEvent: (event) => {
        waiting.push(event)
        if (waiting.length > maxLiveEvents) waiting.shift()
      },
      onId: (id) => {
        last.current = { key, id }
      },
      onState: setState,
    }).catch((thrown: unknown) => {
      if (!(thrown instanceof ApiError)) throw thrown
      setState(null)
      setError(thrown)
      checkSession(thrown)
    })
    return () => {
      stopping.abort()
      clearInterval(timer)
      show()
      setState(null)
    }
  }, [isRunning, key, accountId, mode, type])

  return { events: shown.key === key ? shown.events : [], state, error }
}
