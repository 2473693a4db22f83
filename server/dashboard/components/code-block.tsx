import type { ReactNode, Ref } from 'react'

type Props = { children: ReactNode; isWide?: boolean; ref?: Ref<HTMLPreElement> }

/**
 * Text as it is, in a monospaced face. A long one scrolls, also by keyboard.
 *
 * @param props.isWide Whether it takes all of the width, also where its lines are short.
 */
export function CodeBlock({ children, isWide = false, ref }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard (WCAG 2.1.1)
    <pre ref={ref} className={isWide ? 'block wide' : 'block'} tabIndex={0}>
      {children}
    </pre>
  )
}
