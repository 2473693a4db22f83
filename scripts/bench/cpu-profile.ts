import { z } from 'zod'

/* Reads the output of `node --cpu-prof`. Pure functions. */

const profileSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
    }),
  ),
  samples: z.array(z.number()),
  /** Microseconds before each sample. */
  timeDeltas: z.array(z.number()),
})

export type CpuProfile = z.output<typeof profileSchema>

/** Self time: without the functions that it calls. */
export type SelfTime = { name: string; seconds: number }

export type ProfileSummary = {
  /** Without idle time. */
  busySeconds: number
  idleSeconds: number
  /** By package or part of the service, the longest first. */
  byPackage: SelfTime[]
  /** By function, the longest first. */
  byFunction: SelfTime[]
}

/** Parses a CPU profile. Throws a ZodError when `text` is something else. */
export function parseCpuProfile(text: string): CpuProfile {
  return profileSchema.parse(JSON.parse(text))
}

export function summarise({ nodes, samples, timeDeltas }: CpuProfile): ProfileSummary {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const packages = new Map<string, number>()
  const functions = new Map<string, number>()
  let idleSeconds = 0
  let busySeconds = 0
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id)
    const seconds = (timeDeltas[index] ?? 0) / 1e6
    if (frame === undefined) continue
    if (frame.functionName === '(idle)') {
      idleSeconds += seconds
      continue
    }
    busySeconds += seconds
    const from = packageOf(frame.url, frame.functionName)
    const name = frame.url === '' ? frame.functionName : `${frame.functionName || '(anonymous)'} ${placeOf(frame)}`
    packages.set(from, (packages.get(from) ?? 0) + seconds)
    functions.set(name, (functions.get(name) ?? 0) + seconds)
  }
  return { busySeconds, idleSeconds, byPackage: ranked(packages), byFunction: ranked(functions) }
}

/** Returns the owner of a function: a package, Node, the engine, or a room of the service. */
export function packageOf(url: string, functionName: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'engine'
  if (url.startsWith('node:')) return 'node'
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)
  if (inPackage?.[1] !== undefined) return inPackage[1]
  const ours = /\/((?:server|contract|scripts)\/(?:[^/]+\/)?)/.exec(url)
  return ours?.[1] ?? url
}

function placeOf({ url, lineNumber }: { url: string; lineNumber: number }): string {
  const short = url.replace(/^.*\/node_modules\//, '').replace(/^file:.*\/(server|contract|scripts)\//, '$1/')
  return `${short}:${lineNumber + 1}`
}

function ranked(times: ReadonlyMap<string, number>): SelfTime[] {
  return [...times].map(([name, seconds]) => ({ name, seconds })).sort((a, b) => b.seconds - a.seconds)
}
