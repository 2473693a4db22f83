import { readConfig } from '../../server/config/config.ts'
import { OperatorError } from '../../server/shared/errors.ts'

/** The words with which an environment is refused. Throws when it is accepted. */
export function faultOf(env: Record<string, string>, machineName?: string): string {
  try {
    readConfig(env, machineName)
  } catch (error) {
    if (error instanceof OperatorError) return error.message
    throw error
  }
  throw new Error('the settings were accepted')
}
