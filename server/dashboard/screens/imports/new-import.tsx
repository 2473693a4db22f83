import '../../styles/forms.css'
import { FileInput, NativeSelect, Stack } from '@mantine/core'
import { IconFileUpload } from '@tabler/icons-react'
import { useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { type DelimiterName, type ImportEncoding, importEncodings } from '../../../../contract/import-files.ts'
import { useScope } from '../../api/scope.tsx'
import { RoleRefusal } from '../../components/role-refusal.tsx'
import { Screen } from '../../components/screen.tsx'
import { AudienceSelect, NoAudience, useHasNoAudience } from '../people/audience-select.tsx'
import { ImportForm } from './import-form.tsx'
import { type FileBeginning, type FileFault, readBeginning } from './read-file.ts'

/** Begins an import: a file is chosen, and what its columns are. */
export function NewImport() {
  const { can } = useScope()
  if (!can('contacts:write')) return <RoleRefusal title="Imports" permission="contacts:write" />
  return (
    <Screen
      title="Import contacts"
      subtitle="From a CSV file or a ZIP of them, into one audience. Nothing is sent before you have seen how it is read."
      parent={{ label: 'Imports', path: '/imports' }}
    >
      <Choosing />
    </Screen>
  )
}

const delimiterOptions: readonly { value: DelimiterName; label: string }[] = [
  { value: 'comma', label: 'Comma' },
  { value: 'semicolon', label: 'Semicolon' },
  { value: 'tab', label: 'Tab' },
  { value: 'pipe', label: 'Vertical bar (|)' },
]

function Choosing() {
  const search: Record<string, unknown> = useSearch({ strict: false })
  const hasNoAudience = useHasNoAudience()
  const [audienceId, setAudienceId] = useState(typeof search.audience === 'string' ? search.audience : '')
  const [file, setFile] = useState<File | null>(null)
  const [encoding, setEncoding] = useState<ImportEncoding | null>(null)
  const [delimiter, setDelimiter] = useState<DelimiterName | null>(null)
  const beginning = useBeginning(file, encoding, delimiter)
  const fault = isFault(beginning) ? beginning.fault : undefined
  const read = isFault(beginning) ? null : beginning
  const csv = read === 'zip' ? null : read
  if (hasNoAudience) return <NoAudience what="An import" />
  return (
    <>
      <Stack maw={560}>
        <AudienceSelect value={audienceId} onChange={setAudienceId} />
        <FileInput
          label="File"
          description="CSV, whose first row names the columns, or a ZIP as Mailchimp exports it. Up to 1 GiB."
          placeholder="Choose a file"
          leftSection={<IconFileUpload size={16} aria-hidden />}
          classNames={{ placeholder: 'file-placeholder' }}
          accept=".csv,.tsv,.txt,.zip,text/csv,text/plain,application/zip"
          clearable
          clearButtonProps={{ 'aria-label': 'Choose no file' }}
          value={file}
          onChange={setFile}
          error={fault}
        />
        {file !== null && (
          <div className="side-by-side">
            <NativeSelect
              label="Separator"
              value={delimiter ?? ''}
              onChange={(event) => setDelimiter((event.currentTarget.value || null) as DelimiterName | null)}
              data={[
                { value: '', label: `As found${csv === null ? '' : ` (${wordOf(csv.delimiter)})`}` },
                ...delimiterOptions,
              ]}
            />
            <NativeSelect
              label="Encoding"
              value={encoding ?? ''}
              onChange={(event) => setEncoding((event.currentTarget.value || null) as ImportEncoding | null)}
              data={[{ value: '', label: `As found${csv === null ? '' : ` (${csv.encoding})`}` }, ...importEncodings]}
            />
          </div>
        )}
      </Stack>
      {file !== null && read !== null && (
        <ImportForm
          key={JSON.stringify(csv?.names ?? null)}
          file={file}
          beginning={csv}
          audienceId={audienceId}
          encoding={encoding}
          delimiter={delimiter}
        />
      )}
    </>
  )
}

function wordOf(delimiter: DelimiterName): string {
  return (delimiterOptions.find(({ value }) => value === delimiter)?.label ?? delimiter).toLowerCase()
}

function isFault(beginning: FileBeginning | FileFault | null): beginning is FileFault {
  return beginning !== null && beginning !== 'zip' && 'fault' in beginning
}

/** Reads the beginning of a file. Null: there is none, or it is not read yet. */
function useBeginning(
  file: File | null,
  encoding: ImportEncoding | null,
  delimiter: DelimiterName | null,
): FileBeginning | FileFault | null {
  const [beginning, setBeginning] = useState<FileBeginning | FileFault | null>(null)
  useEffect(() => {
    if (file === null) {
      setBeginning(null)
      return
    }
    let isCurrent = true
    void readBeginning(file, { encoding, delimiter }).then((read) => {
      if (isCurrent) setBeginning(read)
    })
    return () => {
      isCurrent = false
    }
  }, [file, encoding, delimiter])
  return beginning
}
