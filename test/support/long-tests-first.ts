import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Their files start processes and PostgreSQL servers, and take up to half a minute each. */
const long = ['/test/fault/', '/test/main/', '/test/cli/']

/**
 * Runs the longest files first, so that no worker has a long one left when the others have none. The runner knows
 * how long files took only where it ran before.
 */
export class LongTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => long.some((folder) => moduleId.includes(folder))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
