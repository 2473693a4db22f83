/** A tag of Liquid, or what Liquid takes for one: a comment up to its end tag, whatever stands in it. */
const segment =
  /\{%-?\s*raw\s*-?%\}[\s\S]*?\{%-?\s*endraw\s*-?%\}|\{%-?\s*comment\b[\s\S]*?\{%-?\s*endcomment\s*-?%\}|\{%[\s\S]*?%\}|\{\{[\s\S]*?\}\}/g

/**
 * Returns a source with each tag of Liquid replaced. Expects one that Liquid has parsed, where each tag is closed: it
 * would take long to look for the ends of others.
 */
export function replaceSegments(source: string, replace: (tag: string, index: number, at: number) => string): string {
  let index = 0
  return source.replace(segment, (tag, at: number) => replace(tag, index++, at))
}

/** Returns the number of tags of Liquid in any text, without looking for their ends. Stops counting beyond `max`. */
export function countTags(source: string, max: number): number {
  let count = 0
  for (let at = source.indexOf('{'); at >= 0 && count <= max; at = source.indexOf('{', at + 1)) {
    const next = source[at + 1]
    if (next === '{' || next === '%') count++
  }
  return count
}
