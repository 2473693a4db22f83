import { z } from 'zod'

/** A method of a program: validates its parameters and runs. */
export type Handler = { parse(params: unknown): () => unknown }

/** Returns a handler whose parameters are validated by `schema`. */
export function handler<T extends z.ZodType>(schema: T, work: (params: z.output<T>) => unknown): Handler {
  return {
    parse(params) {
      const parsed = schema.parse(params)
      return () => work(parsed)
    },
  }
}

const question = z.object({ id: z.number(), method: z.string(), params: z.unknown() })

/**
 * Handles the calls of the benchmark until the program is stopped, and reports that the program is ready. Errors are
 * sent back too.
 */
export function serve(handlers: Readonly<Record<string, Handler>>): void {
  async function answer({ id, method, params }: z.output<typeof question>): Promise<void> {
    try {
      const asked = handlers[method]
      if (asked === undefined) throw new Error(`there is no "${method}"`)
      process.send?.({ id, result: await asked.parse(params)() })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }

  process.on('message', (message) => {
    const asked = question.safeParse(message)
    if (asked.success) void answer(asked.data)
  })
  process.channel?.ref()
  process.send?.('ready')
}
