import { mkdtempDisposable, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { build, builtHash, paths } from '../../dashboard/build.ts'
import { sourceHash } from '../../dashboard/source-hash.ts'
import { browserRunsHere, startBrowser } from '../../support/browser.ts'
import type { Benchmark, BenchmarkContext, Measurement, Outcome } from '../benchmark.ts'
import { type FirstView, measureFirstView, overviewIsUsable, signInIsUsable, signUpFirst } from '../first-view.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, type Round, valuesOf } from '../rounds.ts'
import { startBare, startWithNpm } from '../starts.ts'
import { median, ratio } from '../statistics.ts'

export const start: Benchmark = {
  name: 'start',
  measures: 'npm start in a fresh folder, with the embedded database → a port that listens → a page that can be used',
  baseline: 'Express with one page, and the same embedded database without tables',
  rounds: 7,
  seconds: 10,
  run,
}

type Measured = {
  listeningMs: number
  /** From the start until the page of the dashboard was answered. Only where the dashboard was built meanwhile. */
  pageMs?: number
  /** By the name of the page. Empty where no browser runs. */
  views: Readonly<Record<string, FirstView>>
}

const built = 'built'
const notBuilt = 'not built'
const bare = 'bare Express'

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes } = context
  await using stack = new AsyncDisposableStack()
  const browser = browserRunsHere ? stack.use(await startBrowser()).browser : null
  const loads = [loadavg()[0] ?? 0]

  const sides = await inTurn<string, Measured>(
    context,
    {
      [built]: {
        prepare: buildIfStale,
        async measure() {
          await using service = await startWithNpm(processes, built)
          return { listeningMs: service.listeningMs, views: await viewsOf(browser, service) }
        },
      },
      [notBuilt]: {
        prepare: () => rm(paths.built, { recursive: true, force: true }),
        async measure() {
          await using cache = await mkdtempDisposable(join(tmpdir(), 'postern-compile-cache-'))
          await using service = await startWithNpm(processes, notBuilt, { NODE_COMPILE_CACHE: cache.path })
          const page = await fetch(`${service.url}/app/sign-in`)
          if (!page.ok) throw new Error(`the dashboard was not built: its page has the status ${page.status}`)
          return { listeningMs: service.listeningMs, pageMs: service.sinceStart(), views: {} }
        },
      },
      [bare]: {
        async measure() {
          await using program = await startBare(processes, bare)
          const { listeningMs, url } = program
          const views = browser && { page: await measureFirstView(browser, { url, isUsable: signInIsUsable }) }
          return { listeningMs, views: views ?? {} }
        },
      },
    },
    describe,
  )
  loads.push(loadavg()[0] ?? 0)
  return outcomeOf(sides, loads)
}

async function buildIfStale(): Promise<void> {
  const hash = sourceHash(paths.root)
  if (builtHash() !== hash) await build(hash)
}

async function viewsOf(browser: Browser | null, service: { url: string; linkToken: string }) {
  if (browser === null) return {}
  const { url } = service
  const signIn = await measureFirstView(browser, { url: `${url}/app/sign-in`, isUsable: signInIsUsable })
  const sessionToken = await signUpFirst(service)
  const overview = await measureFirstView(browser, { url: `${url}/app`, isUsable: overviewIsUsable, sessionToken })
  return { 'sign-in': signIn, overview }
}

function describe({ listeningMs, views }: Measured): string {
  const times = Object.entries(views).map(([page, { usableMs }]) => `${page} usable after ${formatNumber(usableMs)} ms`)
  return [`listens after ${formatNumber(listeningMs)} ms`, ...times].join(', ')
}

function outcomeOf(sides: Readonly<Record<string, Round<Measured>[]>>, loads: readonly number[]): Outcome {
  const listening = (side: string) => valuesOf(sides[side] ?? [], ({ listeningMs }) => listeningMs)
  const views = Object.entries(sides).flatMap(([side, measured]) =>
    Object.keys(measured[0]?.value.views ?? {}).map((page) => ({
      side,
      page,
      usableMs: valuesOf(measured, (one) => one.views[page]?.usableMs ?? Number.NaN),
      scriptBytes: valuesOf(measured, (one) => one.views[page]?.scriptBytes ?? Number.NaN),
    })),
  )
  const ofService = views.filter(({ side }) => side === built)
  const measurements: Measurement[] = [
    ...Object.keys(sides).map((side) => ({ side, figure: 'listens', unit: 'ms', values: listening(side) })),
    {
      side: notBuilt,
      figure: 'page answered',
      unit: 'ms',
      values: valuesOf(sides[notBuilt] ?? [], ({ pageMs = Number.NaN }) => pageMs),
    },
    ...views.map(({ side, page, usableMs }) => ({ side, figure: `${page} usable`, unit: 'ms', values: usableMs })),
    ...ofService.map(({ side, page, scriptBytes }) => ({
      side,
      figure: `${page}, scripts`,
      unit: 'kB',
      values: scriptBytes.map((bytes) => bytes / 1000),
    })),
  ]
  return {
    measurements,
    targets: [
      { figure: 'listens, built', unit: 'ms', value: median(listening(built)), goal: { atMost: 3_000 } },
      { figure: 'listens, not built', unit: 'ms', value: median(listening(notBuilt)), goal: { atMost: 6_000 } },
      ...ofService.flatMap(({ page, usableMs, scriptBytes }) => [
        { figure: `${page} usable`, unit: 'ms', value: median(usableMs), goal: { atMost: 1_000 } },
        { figure: `${page}, scripts`, unit: 'kB', value: median(scriptBytes) / 1000, goal: { atMost: 250 } },
      ]),
    ],
    costs: costsOf(sides),
    notes: [
      `To bare Express: built ${formatNumber(ratio(listening(built), listening(bare)))}, not built ${formatNumber(ratio(listening(notBuilt), listening(bare)))}. The baseline is started without npm, which takes 0.3 s of the others.`,
      'Each start is of a fresh folder: the database is created, and migrated. The time is from the start of npm to the first connection that is accepted. Built: as at a second start, with what was compiled kept. Not built: as after npm ci, with nothing compiled; npm start builds the dashboard beside the service, which answers its page when that is done.',
      'A page is usable in the frame that shows the form to sign in, or the overview with all its figures; from the navigation, by the clock of the page, in a browser that has nothing of it in its cache.',
      'Scripts are all that the page had loaded by then, with gzip. 1 kB is 1,000 bytes.',
      `Load average of a minute: ${loads.map(formatNumber).join(' at the beginning, ')} at the end.`,
      ...(ofService.length === 0 ? ['The browser of the benchmark runs on Linux x64 only: no page was measured.'] : []),
    ],
  }
}
