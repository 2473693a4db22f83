import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { freePort } from '../../scripts/support/free-port.ts'
import { patienceMs } from '../support/patience.ts'

/** A series that a query returned, with its value now. */
export type Sample = { metric: Record<string, string>; value: number }

/** A rule for alerts, as Prometheus has read it. `lastError` is empty unless it could not be evaluated. */
export type Rule = { name: string; health: string; state: string; lastError?: string }

/** A real Prometheus on loopback, which reads the metrics of one service each second. */
export type Prometheus = AsyncDisposable & {
  /** Evaluates a query now. Throws with the words of Prometheus when it refuses it. */
  query(expression: string): Promise<Sample[]>
  /** Returns the rules once each has been evaluated. */
  rules(): Promise<Rule[]>
}

/** @param rulesFile Path of the rules for alerts. They are evaluated each second. */
export async function startPrometheus(serviceUrl: string, rulesFile: string): Promise<Prometheus> {
  await using starting = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-prometheus-'))
  starting.defer(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'prometheus.json')
  // JSON is YAML.
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: [{ job_name: 'postern', static_configs: [{ targets: [new URL(serviceUrl).host] }] }],
  }
  await writeFile(file, JSON.stringify(config))
  const address = `127.0.0.1:${await freePort()}`
  const options = [`--config.file=${file}`, `--storage.tsdb.path=${directory}`, `--web.listen-address=${address}`]
  const child = spawn('prometheus', [...options, '--log.level=error'], { stdio: ['ignore', 'inherit', 'inherit'] })
  const exited = once(child, 'exit')
  starting.defer(async () => {
    child.kill()
    await exited
  })

  async function get<T>(path: string): Promise<T> {
    const answer = await (await fetch(`http://${address}/api/v1/${path}`)).json()
    const { status, data, error } = answer as { status: string; data: T; error?: string }
    if (status !== 'success') throw new Error(`Prometheus refuses ${decodeURIComponent(path)}: ${error}`)
    return data
  }

  async function rules(): Promise<Rule[]> {
    const { groups } = await get<{ groups: { rules: Rule[] }[] }>('rules')
    return groups.flatMap((group) => group.rules)
  }

  await vi.waitFor(() => get('status/buildinfo'), { timeout: patienceMs })
  const running = starting.move()
  return {
    async query(expression) {
      type Found = { result: { metric: Record<string, string>; value: [number, string] }[] }
      const { result } = await get<Found>(`query?query=${encodeURIComponent(expression)}`)
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }))
    },
    async rules() {
      await expect.poll(async () => (await rules()).filter(({ health }) => health === 'unknown')).toEqual([])
      return rules()
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
