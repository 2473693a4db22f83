import '@mantine/charts/styles.css'
import { BarChart, LineChart } from '@mantine/charts'
import { countOf } from './format.ts'

/*
 * Loaded behind the figures, since the library is larger than the rest of the screen. A table beside each chart has its
 * numbers, so charts are left out for screen readers.
 */

export type ChartProps = {
  kind: 'lines' | 'bars'
  data: Record<string, string | number>[]
  series: { name: string; color: string }[]
}

const shared = {
  h: 220,
  dataKey: 'name',
  withLegend: true,
  gridAxis: 'x',
  tickLine: 'none',
  valueFormatter: countOf,
  yAxisProps: { allowDecimals: false, width: 48 },
  xAxisProps: { minTickGap: 24 },
  legendProps: { verticalAlign: 'bottom', itemSorter: null },
} as const

/** A chart over time. */
export function Chart({ kind, data, series }: ChartProps) {
  if (kind === 'bars') {
    return (
      <BarChart
        {...shared}
        type="stacked"
        data={data}
        series={series}
        maxBarWidth={28}
        barProps={{ isAnimationActive: false }}
        barChartProps={{ accessibilityLayer: false }}
      />
    )
  }
  return (
    <LineChart
      {...shared}
      data={data}
      series={series}
      curveType="linear"
      strokeWidth={1.75}
      withDots={false}
      lineProps={{ isAnimationActive: false }}
      lineChartProps={{ accessibilityLayer: false }}
    />
  )
}
