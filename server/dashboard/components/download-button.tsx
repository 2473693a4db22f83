import { Button, Stack } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import type { ApiError } from '../api/client.ts'
import { downloadFile } from '../api/download.ts'
import { useScope } from '../api/scope.tsx'
import { ErrorNotice } from './error-notice.tsx'

type Props = {
  label: string
  /** Such as `/v1/imports/imp_…/failed-rows`. */
  path: string
  fileName: string
  /** Default: it can be used. */
  isDisabled?: boolean
}

/** Has the browser save what an operation returns as a file, and says why where it is refused. */
export function DownloadButton({ label, path, fileName, isDisabled = false }: Props) {
  const { accountId, mode } = useScope()
  const [isRunning, setRunning] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  async function download(): Promise<void> {
    setRunning(true)
    setError(null)
    try {
      await downloadFile({ accountId, mode }, path, fileName)
    } catch (refusal) {
      setError(refusal as ApiError)
    } finally {
      setRunning(false)
    }
  }
  return (
    <Stack gap="xs" align="flex-end">
      <Button
        variant="default"
        leftSection={<IconDownload size={16} aria-hidden />}
        loading={isRunning}
        disabled={isDisabled}
        onClick={() => void download()}
      >
        {label}
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  )
}
