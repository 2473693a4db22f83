/** The part of html-to-text that is used; the package has no types. */
declare module 'html-to-text' {
  type Selector = { selector: string; format?: string; options?: Record<string, unknown> }
  type Options = {
    wordwrap?: number | false
    selectors?: readonly Selector[]
    limits?: { maxInputLength?: number; maxDepth?: number; ellipsis?: string }
  }
  export function compile(options: Options): (html: string) => string
}
