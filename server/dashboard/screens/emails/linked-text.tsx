import { Fragment } from 'react'
import { CodeBlock } from '../../components/code-block.tsx'
import { linkTarget } from './link-target.ts'
import { previewLimit } from './preview-html.ts'

/** Most addresses of a text that become links. */
const maxLinks = 200
/** Punctuation that ends a sentence, and is not part of the address before it. */
const afterAddress = /[.,;:!?)\]]$/

/** The text of a message, with its addresses as links. In a text beyond what is previewed they stay text. */
export function LinkedText({ text }: { text: string }) {
  return (
    <CodeBlock isWide>{text.length > previewLimit ? text : text.split(/(https?:\/\/[^\s<>"']+)/).map(piece)}</CodeBlock>
  )
}

function piece(part: string, index: number) {
  const isAddress = index % 2 === 1 && index < 2 * maxLinks
  const address = afterAddress.test(part) ? part.slice(0, -1) : part
  const target = isAddress ? linkTarget(address) : null
  const key = `${index}`
  if (target === null) return <Fragment key={key}>{part}</Fragment>
  return (
    <Fragment key={key}>
      <a href={target} target="_blank" rel="noopener noreferrer nofollow">
        {address}
      </a>
      {part.slice(address.length)}
    </Fragment>
  )
}
