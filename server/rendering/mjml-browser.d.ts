/** The part of mjml-browser that is used; the package has no types. */
declare module 'mjml-browser' {
  export type MjmlError = { line: number; message: string; tagName: string }
  type Options = {
    ignoreIncludes: true
    validationLevel: 'soft'
    fonts: Readonly<Record<string, string>>
    keepComments: boolean
  }
  /** Rejects for a source that has no MJML at all. */
  // biome-ignore lint/style/noDefaultExport: that is how the package exports it
  export default function mjml2html(source: string, options: Options): Promise<{ html: string; errors: MjmlError[] }>
}
