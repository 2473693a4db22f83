import { readFileSync } from 'node:fs'
import { z } from 'zod'

const packageFile = new URL('../../package.json', import.meta.url)

/** Returns the arguments that `npm start` gives to Node: its options and the program. */
export function startArguments(): { options: string[]; program: string } {
  const { scripts } = z
    .object({ scripts: z.object({ start: z.string() }) })
    .parse(JSON.parse(readFileSync(packageFile, 'utf8')))
  const [node, ...options] = scripts.start.split(' ')
  const program = options.pop()
  if (node !== 'node' || program === undefined) throw new Error(`"npm start" does not run node: ${scripts.start}`)
  return { options, program }
}
