import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import type { ChartProps } from './charts.tsx'
import { countOf } from './format.ts'

const Chart = lazy(async () => ({ default: (await import('./charts.tsx')).Chart }))

export type Tile = {
  name: string
  value: string
  /** A rate, shown below the value. */
  second?: string
}

type Props = {
  title: string
  /** The title of the table with the numbers of the chart. */
  chartTitle: string
  tiles: readonly Tile[]
  chart: ChartProps
}

/** Figures of a period: the totals, a chart, and a table with the numbers of the chart. */
export function Panel({ title, chartTitle, tiles, chart }: Props) {
  type Row = ChartProps['data'][number]
  const columns: Column<Row>[] = [
    { header: 'Time', cell: ({ name }) => name },
    ...chart.series.map(
      ({ name }): Column<Row> => ({
        header: name,
        align: 'right',
        cell: (row) => <span className="number">{countOf(Number(row[name] ?? 0))}</span>,
      }),
    ),
  ]
  return (
    <Section title={title}>
      <dl className="tiles">
        {tiles.map(({ name, value, second }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="number">{value}</dd>
            {second !== undefined && <dd className="number second-line">{second}</dd>}
          </div>
        ))}
      </dl>
      <div className="chart" aria-hidden="true">
        <Suspense fallback={<Skeleton height={220} />}>
          <Chart {...chart} />
        </Suspense>
      </div>
      <details className="disclosure">
        <summary>{chartTitle} as a table</summary>
        <PlainTable label={chartTitle} rows={chart.data} columns={columns} keyOf={({ start }) => String(start)} />
      </details>
    </Section>
  )
}
