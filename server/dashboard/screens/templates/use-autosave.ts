import { useCallback, useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'

export type SaveState =
  | { kind: 'saved' }
  /** Something was typed that is not sent yet, or is on its way. */
  | { kind: 'saving' }
  | { kind: 'failed'; error: ApiError }

/** Milliseconds without a change before it is saved, so that not each letter is a request. */
const pauseMs = 700

/**
 * Saves `values` a moment after each change, one request at a time, and what is left when the screen is left.
 *
 * @param send Sends the fields that differ from what was saved last. Throws an ApiError when they are refused; they are
 * sent again with the next change, or by `retry`.
 */
export function useAutosave<Values extends object>(
  values: Values,
  send: (changes: Partial<Values>) => Promise<void>,
): { state: SaveState; retry: () => void } {
  const [state, setState] = useState<SaveState>({ kind: 'saved' })
  const saved = useRef(values)
  const latest = useRef({ values, send })
  latest.current = { values, send }
  const isRunning = useRef(false)

  const flush = useCallback(async () => {
    if (isRunning.current) return
    isRunning.current = true
    try {
      for (;;) {
        const { values: next, send: sendChanges } = latest.current
        const changes = changesOf(saved.current, next)
        if (Object.keys(changes).length === 0) break
        setState({ kind: 'saving' })
        await sendChanges(changes)
        saved.current = next
      }
      setState({ kind: 'saved' })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setState({ kind: 'failed', error })
    } finally {
      isRunning.current = false
    }
  }, [])

  useEffect(() => {
    if (Object.keys(changesOf(saved.current, values)).length === 0) return
    setState({ kind: 'saving' })
    const timer = setTimeout(() => void flush(), pauseMs)
    return () => clearTimeout(timer)
  }, [values, flush])
  useEffect(() => () => void flush(), [flush])
  return { state, retry: () => void flush() }
}

function changesOf<Values extends object>(before: Values, after: Values): Partial<Values> {
  const changes: Partial<Values> = {}
  for (const name of Object.keys(after) as (keyof Values)[]) {
    if (!Object.is(before[name], after[name])) changes[name] = after[name]
  }
  return changes
}
