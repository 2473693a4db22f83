import { readFileSync } from 'node:fs'
import { z } from 'zod'

const packageFile = new URL('../../package.json', import.meta.url)

/**
 * Returns what starts the service as `npm start` does, without building the dashboard: the options that it gives to
 * Node, and the program.
 */
export function startArguments(): { options: string[]; program: string } {
  const { scripts } = z
    .object({ scripts: z.object({ start: z.string() }) })
    .parse(JSON.parse(readFileSync(packageFile, 'utf8')))
  const [node, ...options] = scripts.start.split(' ')
  const program = options.pop()
  if (node !== 'node' || program !== 'scripts/start.ts') throw new Error(`"npm start" is unknown: ${scripts.start}`)
  return { options, program: 'server/main.ts' }
}
