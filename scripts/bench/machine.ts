import { cpus, platform, release, totalmem } from 'node:os'
import { findBinaries } from '../../server/database/embedded/binaries.ts'
import { run } from '../support/run.ts'

/** The machine and versions that results come from. */
export type Machine = {
  date: string
  cpu: string
  cores: number
  memoryGiB: number
  system: string
  node: string
  postgres: string
}

export async function describeMachine(): Promise<Machine> {
  const { postgres } = await findBinaries(undefined)
  const { stdout } = await run(postgres, ['--version'], { quiet: true })
  const [first] = cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.version,
    postgres: /[\d.]+/.exec(stdout)?.[0] ?? 'unknown',
  }
}
