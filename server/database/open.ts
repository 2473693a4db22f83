import { startEmbeddedDatabase } from './embedded/start.ts'

/** The operator's PostgreSQL, or the embedded one with its directory. */
export type DatabaseLocation =
  | { readonly kind: 'external'; readonly url: string }
  | { readonly kind: 'embedded'; readonly dataDir: string }

/** A PostgreSQL to connect to. Disposing stops it if it is the embedded one. */
export type OpenDatabase = AsyncDisposable & {
  connectionString: string
  /** True: it is the embedded one, created by this process. */
  isNew: boolean
  /** Rejects with an OperatorError when the embedded database has ended by itself. */
  failed: Promise<never>
}

/**
 * Starts the embedded database, or returns the operator's, which it does not connect to. Throws OperatorError for
 * problems that the operator can fix.
 *
 * @param onProgram Called when the embedded database has started a program of PostgreSQL to wait for.
 */
export async function openDatabase(location: DatabaseLocation, onProgram?: () => void): Promise<OpenDatabase> {
  const failure = Promise.withResolvers<never>()
  // Prevents an unhandled rejection if nothing waits for it.
  failure.promise.catch(() => undefined)
  if (location.kind === 'external') {
    return {
      connectionString: location.url,
      isNew: false,
      failed: failure.promise,
      [Symbol.asyncDispose]: async () => undefined,
    }
  }
  const { dataDir } = location
  const embedded = await startEmbeddedDatabase({ dataDir, onUnexpectedExit: failure.reject, onProgram })
  return {
    connectionString: embedded.connectionString,
    isNew: embedded.isNew,
    failed: failure.promise,
    [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose](),
  }
}
