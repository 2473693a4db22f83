import '../../styles/overview.css'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ShareBar } from '../../components/share-bar.tsx'
import { countOf } from '../overview/format.ts'
import { aboutCount, bytesText } from './format.ts'

type Sizes = Result<'GET /v1/operator/storage'>
type Kept = Sizes['retention'][number]
type TableRow = Sizes['tables'][number] & { share: number }

/** Tables that are shown before the reader asks for all. */
const shownTables = 15

const tableColumns: readonly Column<TableRow>[] = [
  { header: 'Table', cell: ({ name }) => <span className="mono">{name}</span> },
  {
    header: 'Rows, about',
    width: '120px',
    align: 'right',
    isMinor: true,
    cell: ({ rows }) =>
      rows === null ? <span className="dimmed">–</span> : <span className="number">{aboutCount(rows)}</span>,
  },
  {
    header: 'Indexes',
    width: '110px',
    align: 'right',
    isMinor: true,
    cell: ({ indexBytes }) => <span className="number">{bytesText(indexBytes)}</span>,
  },
  {
    header: 'Size',
    width: '110px',
    align: 'right',
    cell: ({ bytes }) => <span className="number">{bytesText(bytes)}</span>,
  },
  {
    header: 'Share',
    width: '24%',
    isMinor: true,
    cell: ({ share }) => (
      <span className="share">
        <ShareBar share={share} isLimit={false} />
      </span>
    ),
  },
]

const retentionColumns: readonly Column<Kept>[] = [
  { header: 'What', cell: ({ what }) => what.charAt(0).toUpperCase() + what.slice(1) },
  {
    header: 'Kept',
    width: '110px',
    align: 'right',
    cell: ({ days }) => <span className="number">{countOf(days)} days</span>,
  },
  {
    header: 'Setting',
    width: '38%',
    isMinor: true,
    cell: ({ setting }) => (setting === null ? <span className="dimmed">Fixed</span> : <code>{setting}</code>),
  },
]

/** How large the database is, and how long what is kept. */
export function Storage() {
  const storage = useGet('GET /v1/operator/storage', {})
  return (
    <Screen title="Storage" subtitle="How large the database is, and how long what is kept.">
      <Loaded query={storage} what="database">
        {({ databaseBytes, tables, retention }) => {
          const rows = tables.map((table) => ({ ...table, share: table.bytes / databaseBytes }))
          return (
            <>
              <Section title={`Tables: ${bytesText(databaseBytes)} in all`}>
                <Tables rows={rows.slice(0, shownTables)} label="The largest tables" />
                {rows.length > shownTables && (
                  <details className="disclosure">
                    <summary>{rows.length - shownTables} more tables</summary>
                    <Tables rows={rows.slice(shownTables)} label="More tables" />
                  </details>
                )}
                <p className="dimmed note">Rows are those of the last analysis of PostgreSQL.</p>
              </Section>
              <Section title="Retention">
                <PlainTable label="Retention" rows={retention} columns={retentionColumns} keyOf={({ what }) => what} />
              </Section>
            </>
          )
        }}
      </Loaded>
    </Screen>
  )
}

function Tables({ rows, label }: { rows: readonly TableRow[]; label: string }) {
  return <PlainTable label={label} rows={rows} columns={tableColumns} keyOf={({ name }) => name} />
}
