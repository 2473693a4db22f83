import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import type { ApiError } from '../../api/client.ts'
import { saveFile } from '../../api/download.ts'
import { useScope } from '../../api/scope.tsx'
import { PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { bytesOf } from './base64.ts'
import type { Message, MessageFile } from './message.ts'

type File = MessageFile & { name: string; index: number }

const units = ['bytes', 'kB', 'MB']

/** The files of a message. A file is saved and never opened here: what is in it may come from anybody. */
export function Attachments({ message }: { message: Message }) {
  const { call } = useScope()
  const [loading, setLoading] = useState<number | null>(null)
  const [error, setError] = useState<ApiError | null>(null)

  async function download({ name, index }: File): Promise<void> {
    setLoading(index)
    setError(null)
    try {
      const params = { id: message.id, index: String(index) }
      const { content } = await call(message.fileOperation, { params })
      saveFile(name, bytesOf(content))
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
        rows={message.attachments.map((file, index) => ({
          ...file,
          index,
          name: file.filename ?? `attachment-${index + 1}`,
        }))}
        keyOf={({ index }) => String(index)}
        columns={[
          {
            header: 'File',
            cell: ({ name }: File) => <span title={name}>{name}</span>,
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
                aria-label={`Download ${file.name}`}
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

/** Returns a size for people. */
export function sizeOf({ size }: { size: number }): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), units.length - 1)
  return `${step === 0 ? size : (size / 1000 ** step).toFixed(1)} ${units[step]}`
}
