import { Liquid } from 'liquidjs'
import { BoundedOutput } from './bounded-output.ts'
import { renderingLimits } from './limits.ts'

/** Where the preheader goes in HTML: one character of a line, so that the lines of faults stay those of the source. */
export const preheaderMark = '{%postern_preheader%}'

/**
 * Creates an engine for Liquid that reads own properties and no files.
 *
 * @param isEscaped Whether values are escaped for HTML, unless their last filter is `raw`.
 */
export function createLiquid({ isEscaped }: { isEscaped: boolean }): Liquid {
  const liquid = new Liquid({
    ownPropertyOnly: true,
    strictFilters: true,
    // Without it, `include` reads files of the working directory.
    templates: {},
    relativeReference: false,
    timezoneOffset: 0,
    // Of one parse.
    parseLimit: 2 * renderingLimits.sourceLength,
    renderLimit: renderingLimits.renderMs,
    memoryLimit: renderingLimits.renderUnits,
    ...(isEscaped && { outputEscape: 'escape' }),
  })
  // They would look for a file, and say so in words of the file system.
  for (const name of ['include', 'render', 'layout']) {
    liquid.registerTag(name, {
      parse: () => {
        throw new Error(`templates cannot include files, so there is no "${name}": write the content here.`)
      },
      render: () => undefined,
    })
  }
  liquid.registerTag('postern_preheader', {
    parse: () => undefined,
    render: (_context, output) => {
      if (output instanceof BoundedOutput) output.markPlace()
    },
  })
  return liquid
}
