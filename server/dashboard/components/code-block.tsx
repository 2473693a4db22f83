/** Text as it is, in a monospaced face. A long one scrolls, also by keyboard. */
export function CodeBlock({ children }: { children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard (WCAG 2.1.1)
    <pre className="block" tabIndex={0}>
      {children}
    </pre>
  )
}
