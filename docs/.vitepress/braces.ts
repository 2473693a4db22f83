import type { MarkdownRenderer } from 'vitepress'

/** Shows `{{ }}` in code within a line as it is written: VitePress otherwise takes it for an expression of Vue. */
export function keepBraces(md: MarkdownRenderer): void {
  md.core.ruler.push('postern_braces', ({ tokens }) => {
    for (const { children } of tokens) {
      for (const token of children ?? []) if (token.type === 'code_inline') token.attrSet('v-pre', '')
    }
  })
}
