import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import type { ApiError } from '../../api/client.ts'
import { saveFile } from '../../api/download.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { sizeOf } from '../../components/size.ts'
import { bytesOf } from './base64.ts'
import type { FileOperation, Message, MessageFile } from './message.ts'
import { visibleOr } from './message-heading.ts'

type File = MessageFile & { name: string; index: number }

const fileColumns: readonly Column<File>[] = [
  { header: 'File', cell: ({ name }) => <span title={name}>{name}</span>, phoneLine: sizeOf },
  { header: 'Type', isMinor: true, cell: ({ contentType }) => contentType },
  { header: 'Size', width: '110px', align: 'right', isMinor: true, cell: sizeOf },
]

/** The files of a message. A file is saved and never opened here: what is in it may come from anybody. */
export function Attachments({ message }: { message: Message }) {
  const { id, attachments, fileOperation } = message
  const files = attachments.map((file, index) => ({
    ...file,
    index,
    name: visibleOr(file.filename, `attachment-${index + 1}`),
  }))
  if (fileOperation !== null) return <Downloads id={id} files={files} operation={fileOperation} />
  return (
    <>
      <FileTable files={files} columns={fileColumns} />
      <p className="dimmed">Files are part of the source: download it and open it in a mail program.</p>
    </>
  )
}

function FileTable({ files, columns }: { files: readonly File[]; columns: readonly Column<File>[] }) {
  return <PlainTable label="Files" rows={files} keyOf={({ index }) => String(index)} columns={columns} />
}

function Downloads({ id, files, operation }: { id: string; files: readonly File[]; operation: FileOperation }) {
  const { call } = useScope()
  const [loading, setLoading] = useState<number | null>(null)
  const [error, setError] = useState<ApiError | null>(null)

  async function download({ name, index }: File): Promise<void> {
    setLoading(index)
    setError(null)
    try {
      const { content } = await call(operation, { params: { id, index: String(index) } })
      saveFile(name, bytesOf(content))
    } catch (refusal) {
      setError(refusal as ApiError)
    } finally {
      setLoading(null)
    }
  }

  const actions = actionsColumn<File>('160px', (file) => (
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
  ))
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <FileTable files={files} columns={[...fileColumns, actions]} />
    </>
  )
}
