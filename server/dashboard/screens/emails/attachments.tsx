import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import type { ApiError } from '../../api/client.ts'
import { useScope } from '../../api/scope.tsx'
import { PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { bytesOf } from './base64.ts'
import type { EmailDetails } from './email.ts'

type File = EmailDetails['attachments'][number] & { index: number }

const units = ['bytes', 'kB', 'MB']

/** The files of an email. A file is saved and never opened here: what is in it may come from anybody. */
export function Attachments({ email }: { email: EmailDetails }) {
  const { call } = useScope()
  const [loading, setLoading] = useState<number | null>(null)
  const [error, setError] = useState<ApiError | null>(null)

  async function download({ index }: File): Promise<void> {
    setLoading(index)
    setError(null)
    try {
      const params = { id: email.id, index: String(index) }
      const { filename, content } = await call('GET /v1/emails/:id/attachments/:index', { params })
      save(filename, bytesOf(content))
    } catch (refusal) {
      setError(refusal as ApiError)
    } finally {
      setLoading(null)
    }
  }

  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <PlainTable
        label="Files"
        rows={email.attachments.map((attachment, index) => ({ ...attachment, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          {
            header: 'File',
            cell: ({ filename }: File) => <span title={filename}>{filename}</span>,
            phoneLine: sizeOf,
          },
          { header: 'Type', isMinor: true, cell: ({ contentType }) => contentType },
          { header: 'Size', width: '110px', align: 'right', isMinor: true, cell: sizeOf },
          {
            header: 'Actions',
            isHeaderHidden: true,
            width: '160px',
            align: 'right',
            cell: (file) => (
              <Button
                size="xs"
                variant="default"
                leftSection={<IconDownload size={14} aria-hidden />}
                aria-label={`Download ${file.filename}`}
                loading={loading === file.index}
                disabled={loading !== null}
                onClick={() => void download(file)}
              >
                Download
              </Button>
            ),
          },
        ]}
      />
    </>
  )
}

/** Has the browser save bytes as a file, of a type that it does not show. */
function save(filename: string, bytes: Uint8Array<ArrayBuffer>): void {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = filename
  link.click()
  URL.revokeObjectURL(url)
}

function sizeOf({ size }: Pick<File, 'size'>): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), units.length - 1)
  return `${step === 0 ? size : (size / 1000 ** step).toFixed(1)} ${units[step]}`
}
