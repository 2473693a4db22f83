import type { Result, Target } from './benchmark.ts'
import type { Machine } from './machine.ts'
import { isMet, median } from './statistics.ts'

/* Formats results for a terminal and for RESULTS.md. Pure functions. */

/** Formats a number with 2 decimals below 10, 1 below 100, otherwise none. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const digits = [100, 10].filter((bound) => Math.abs(value) < bound).length
  return value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })
}

export function formatGoal({ goal, unit = '' }: Pick<Target, 'goal' | 'unit'>): string {
  const [sign, bound] = 'atLeast' in goal ? ['≥', goal.atLeast] : ['≤', goal.atMost]
  return `${sign} ${bound.toLocaleString('en')}${unit === '' ? '' : ` ${unit}`}`
}

function formatBytes(bytes: number): string {
  return `${formatNumber(bytes / 2 ** 20)} MiB`
}

type Table = { head: readonly string[]; rows: readonly (readonly string[])[] }

function measurementsOf({ measurements }: Result): Table {
  return {
    head: ['', 'figure', 'median', 'least', 'greatest'],
    rows: measurements.map(({ side, figure, unit, values }) => [
      side,
      figure,
      `${formatNumber(median(values))} ${unit}`,
      formatNumber(Math.min(...values)),
      formatNumber(Math.max(...values)),
    ]),
  }
}

function targetsOf({ targets }: Result): Table {
  return {
    head: ['', 'value', 'to reach', ''],
    rows: targets.map(({ figure, unit = '', value, goal }) => [
      figure,
      `${formatNumber(value)} ${unit}`.trim(),
      formatGoal({ goal, unit }),
      isMet(value, goal) ? 'met' : 'NOT MET',
    ]),
  }
}

function costsOf({ costs, peakBytes }: Result): Table {
  const processes = Object.keys(peakBytes)
  const sides = [...new Set(costs.map(({ side }) => side))]
  const cpuOf = (side: string, process: string) =>
    costs.find((entry) => entry.side === side && entry.process === process)?.cpuSeconds
  return {
    head: ['', '', ...processes],
    rows: [
      ...sides.map((side) => [
        side,
        'CPU s a round',
        ...processes.map((process) => {
          const seconds = cpuOf(side, process)
          return seconds === undefined ? '' : formatNumber(seconds)
        }),
      ]),
      ['', 'peak memory', ...Object.values(peakBytes).map(formatBytes)],
    ],
  }
}

function tablesOf(result: Result): Table[] {
  return [measurementsOf(result), targetsOf(result), costsOf(result)].filter(({ rows }) => rows.length > 0)
}

/** Formats a result for a terminal, with columns separated by spaces. */
export function toText(result: Result, about: { measures: string; baseline: string | null }): string {
  const tables = tablesOf(result).map((table) => {
    const lines = [table.head, ...table.rows]
    const widths = table.head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
    return lines
      .map((line) => `  ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
      .join('\n')
  })
  const notes = result.notes.map((note) => `  ${note}`).join('\n')
  return [titleOf(result, about), ...tables, notes].filter((part) => part !== '').join('\n\n')
}

function titleOf(result: Result, { measures, baseline }: { measures: string; baseline: string | null }): string {
  const against = baseline === null ? '' : `\n  against ${baseline}`
  return `${result.name}: ${measures}${against}\n  ${howOf(result)}`
}

function howOf({ rounds, seconds, size }: Result): string {
  const part = size === 1 ? '' : `, ${formatNumber(size * 100)} % of the prepared data`
  return `${rounds} ${rounds === 1 ? 'round' : 'rounds'} of about ${seconds} s${part}`
}

/** Returns the section of a benchmark in RESULTS.md. */
export function toMarkdown(result: Result, about: { measures: string; baseline: string | null }, on: Machine): string {
  const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const tables = tablesOf(result).map(({ head, rows }) =>
    [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n'),
  )
  return [
    `## ${result.name}`,
    `${about.measures}${about.baseline === null ? '' : `; against ${about.baseline}`}. ${howOf(result)}.`,
    machineLine(on),
    ...tables,
    result.notes.map((note) => `- ${note.replaceAll('<', '&lt;')}`).join('\n'),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

export function machineLine({ date, cpu, cores, memoryGiB, system, node, postgres }: Machine): string {
  return `${date}: ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, PostgreSQL ${postgres}.`
}

const introduction = `# Results of the benchmarks

Written by \`npm run bench -- --write\`; how each is measured stands in \`scripts/bench/benchmarks\`.`

/**
 * Replaces sections in the text of RESULTS.md and orders them by `names`. Sections of other benchmarks stay unchanged.
 */
export function withSections(
  text: string,
  sections: Readonly<Record<string, string>>,
  names: readonly string[],
): string {
  const known = new Map(
    text
      .split(/^(?=## )/m)
      .filter((part) => part.startsWith('## '))
      .map((part) => [/^## (\S+)/.exec(part)?.[1] ?? '', part.trim()]),
  )
  for (const [name, section] of Object.entries(sections)) known.set(name, section.trim())
  const ordered = names.flatMap((name) => known.get(name) ?? [])
  return `${[introduction, ...ordered].join('\n\n')}\n`
}
