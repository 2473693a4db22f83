import { Button, Group, Stack, Text } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useEffect, useRef, useState } from 'react'
import type { ApiError } from '../api/client.ts'
import { downloadFile } from '../api/download.ts'
import { useScope } from '../api/scope.tsx'
import { ErrorNotice } from './error-notice.tsx'
import { sizeOf } from './size.ts'

type Props = {
  label: string
  /** Such as `/v1/imports/imp_…/failed-rows`. */
  path: string
  fileName: string
  /** Default: it can be used. */
  isDisabled?: boolean
  /** Whether it is the primary action of the screen. Default: no. */
  isPrimary?: boolean
}

/** A download under way. */
type Running = { bytes: number; stop: () => void }

/** The button that was pressed is disabled meanwhile, and a disabled button has no focus. */
function takeFocus(element: HTMLButtonElement | null): void {
  element?.focus()
}

/** Has the browser save what an operation returns as a file, and says why where it is refused. */
export function DownloadButton({ label, path, fileName, isDisabled = false, isPrimary = false }: Props) {
  const { accountId, mode } = useScope()
  const [running, setRunning] = useState<Running | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const button = useRef<HTMLButtonElement>(null)
  const isRunning = running !== null
  const wasRunning = useRef(false)
  useEffect(() => {
    // "Stop" is gone, and with it the focus that it had.
    if (wasRunning.current && !isRunning && document.activeElement === document.body) button.current?.focus()
    wasRunning.current = isRunning
  }, [isRunning])
  async function download(): Promise<void> {
    const ending = new AbortController()
    const stop = () => ending.abort()
    const { signal } = ending
    const onProgress = (bytes: number) => setRunning({ bytes, stop })
    onProgress(0)
    setError(null)
    try {
      await downloadFile({ scope: { accountId, mode }, path, fileName, signal, onProgress })
    } catch (refusal) {
      if (!signal.aborted) setError(refusal as ApiError)
    } finally {
      setRunning(null)
    }
  }
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        {running !== null && (
          <>
            <Text fz="xs" c="dimmed" className="number">
              {sizeOf({ size: running.bytes })} so far
            </Text>
            <Button ref={takeFocus} variant="subtle" color="gray" onClick={running.stop}>
              Stop
            </Button>
          </>
        )}
        <Button
          ref={button}
          variant={isPrimary ? 'filled' : 'default'}
          leftSection={<IconDownload size={16} aria-hidden />}
          loading={isRunning}
          disabled={isDisabled}
          onClick={() => void download()}
        >
          {label}
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  )
}
