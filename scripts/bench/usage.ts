import { readdir, readFile } from 'node:fs/promises'

/** The usage of a process, or of several, since the start. */
export type Usage = { cpuSeconds: number; peakBytes: number }

/** Linux reports CPU time in hundredths of a second (proc(5), sysconf(_SC_CLK_TCK)). */
const ticksPerSecond = 100

export type Stat = {
  parent: number
  cpuSeconds: number
  /** CPU time of the children that have ended. */
  childrenCpuSeconds: number
}

/** Parses `/proc/<pid>/stat`. The fields follow the last `)`, because the name may have spaces and parentheses. */
export function parseStat(text: string): Stat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ticks = (index: number) => Number(fields[index]) / ticksPerSecond
  return {
    parent: Number(fields[1]),
    cpuSeconds: ticks(11) + ticks(12),
    childrenCpuSeconds: ticks(13) + ticks(14),
  }
}

/** Parses a line such as `VmHWM:   123 kB` of `/proc/<pid>/status`. Returns bytes; 0 without the line. */
export function parseStatusBytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}

/** True when the usage of other processes can be read from `/proc`. Otherwise, Node processes are asked. */
export const canReadProc = process.platform === 'linux'

/** Returns the usage of one process. Throws when it has ended. */
export async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ])
  return { cpuSeconds: parseStat(stat).cpuSeconds, peakBytes: parseStatusBytes(status, 'VmHWM') }
}

/**
 * Returns the usage of all descendants of a process: their CPU time so far, including that of ended ones, and their
 * present memory, with shared memory counted once.
 */
export async function usageOfDescendants(pid: number): Promise<{ cpuSeconds: number; bytes: number }> {
  const stats = await allStats()
  const family = new Set<number>([pid])
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const [member, { parent }] of stats) if (family.has(parent)) family.add(member)
  }
  family.delete(pid)
  let cpuSeconds = 0
  let own = 0
  let shared = 0
  for (const member of family) {
    const stat = stats.get(member)
    const status = await readFile(`/proc/${member}/status`, 'utf8').catch(() => '')
    cpuSeconds += (stat?.cpuSeconds ?? 0) + (stat?.childrenCpuSeconds ?? 0)
    own += parseStatusBytes(status, 'RssAnon')
    shared = Math.max(shared, parseStatusBytes(status, 'RssShmem'))
  }
  return { cpuSeconds, bytes: own + shared }
}

async function allStats(): Promise<Map<number, Stat>> {
  const stats = new Map<number, Stat>()
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // The process may have ended since.
    const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => null)
    if (text !== null) stats.set(Number(name), parseStat(text))
  }
  return stats
}
