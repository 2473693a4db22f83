/*
 * A message made of blocks, written as MJML and read back from it. MJML is all that is stored: what is made of blocks can
 * be edited as MJML, and MJML is shown as blocks for as long as it is exactly what the blocks would be written as.
 */

export const alignments = ['left', 'center', 'right'] as const
export type Alignment = (typeof alignments)[number]

export type Block =
  | { kind: 'heading'; text: string; level: 1 | 2; align: Alignment }
  /** HTML of paragraphs, lists, bold, italic and links. */
  | { kind: 'text'; html: string; align: Alignment }
  /** `width`: pixels as digits; empty: as wide as the message. `href`: where a click leads; may be empty. */
  | { kind: 'image'; src: string; alt: string; width: string; href: string }
  | { kind: 'button'; text: string; href: string; align: Alignment }
  | { kind: 'divider' }
  /** `height`: pixels as digits. */
  | { kind: 'space'; height: string }

export type BlockKind = Block['kind']

export type BlockMessage = {
  /** Colors: "#" and six hexadecimal digits. */
  background: string
  buttonColor: string
  blocks: readonly Block[]
}

/** A new block of a kind. */
export const newBlocks: { readonly [Kind in BlockKind]: Extract<Block, { kind: Kind }> } = {
  heading: { kind: 'heading', text: 'Heading', level: 1, align: 'left' },
  text: { kind: 'text', html: '<p>Write here.</p>', align: 'left' },
  image: { kind: 'image', src: '', alt: '', width: '', href: '' },
  button: { kind: 'button', text: 'Open', href: 'https://', align: 'left' },
  divider: { kind: 'divider' },
  space: { kind: 'space', height: '24' },
}

const firstMessage: BlockMessage = {
  background: '#ffffff',
  buttonColor: '#1d4ed8',
  blocks: [
    newBlocks.heading,
    { kind: 'text', html: '<p>Hello,</p><p>Write your message here.</p>', align: 'left' },
    { kind: 'text', html: '<p><a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>', align: 'left' },
  ],
}

/** Blocks of a message at most: each is a form. MJML with more of them is edited as MJML. */
export const blockLimit = 200

const closings: Record<string, string> = { '{{': '}}', '{%': '%}' }

/**
 * Returns a line with what `ofTag` and `ofText` make of its tags of Liquid and of the texts between them. Tags are written
 * as they are: the service takes them out before it reads the MJML. Takes time in proportion to the line.
 */
function replaceLiquid(
  line: string,
  { ofTag = (tag) => tag, ofText = (text) => text }: { ofTag?(tag: string): string; ofText?(text: string): string },
): string {
  let result = ''
  let end = 0
  const unclosed = new Set<string>()
  for (const { 0: opening, index } of line.matchAll(/\{[{%]/g)) {
    if (index < end || unclosed.has(opening)) continue
    const closing = line.indexOf(closings[opening] ?? '', index + 2)
    if (closing < 0) unclosed.add(opening)
    else {
      result += ofText(line.slice(end, index)) + ofTag(line.slice(index, closing + 2))
      end = closing + 2
    }
  }
  return result + ofText(line.slice(end))
}

/** Whether a text has a tag of Liquid. */
export function hasLiquid(text: string): boolean {
  return replaceLiquid(text, { ofTag: () => '' }) !== text
}

const characters: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const references = Object.fromEntries(
  Object.entries(characters).map(([character, reference]) => [reference, character]),
)

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => characters[character] ?? character)
}

function unescaped(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot);/g, (reference) => references[reference] ?? reference)
}

/** Returns HTML of a browser with its tags of Liquid as they were typed. */
export function htmlWithLiquid(html: string): string {
  return replaceLiquid(html, { ofTag: unescaped })
}

/** The reverse, for a browser to read. */
export function htmlForBrowser(html: string): string {
  return replaceLiquid(html, { ofTag: escaped })
}

/** Characters that the text of a block cannot contain: line breaks, and the marks for a tag of Liquid. */
const unwritable = /[\n\r\u2028\u2029\ue000\ue001]+/g

/** Returns a text as MJML has it: escaped, except for its tags of Liquid. */
function written(text: string): string {
  return replaceLiquid(text.replace(unwritable, ' '), { ofText: escaped })
}

/** Returns attributes, without those that are empty. */
function attributes(of: Record<string, string>): string {
  return Object.entries(of)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => ` ${name}="${written(value)}"`)
    .join('')
}

function lineOf(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `<mj-text align="${block.align}"><h${block.level}>${written(block.text)}</h${block.level}></mj-text>`
    case 'text':
      return `<mj-text align="${block.align}">${block.html.replace(unwritable, ' ')}</mj-text>`
    case 'image': {
      const { src, alt, width, href } = block
      return `<mj-image src="${written(src)}" alt="${written(alt)}"${attributes({ width: width && `${width}px`, href })} />`
    }
    case 'button':
      return `<mj-button align="${block.align}" href="${written(block.href)}">${written(block.text)}</mj-button>`
    case 'divider':
      return '<mj-divider border-width="1px" border-color="#d4d4d8" />'
    case 'space':
      return `<mj-spacer height="${block.height || '0'}px" />`
  }
}

/** Lines before the first block. */
const linesBefore = 11

/** Returns MJML with one block a line. */
export function mjmlOfBlocks({ background, buttonColor, blocks }: BlockMessage): string {
  return `<mjml>
  <mj-head>
    <mj-attributes>
      <mj-all font-family="Arial, Helvetica, sans-serif" />
      <mj-text font-size="16px" line-height="1.5" />
      <mj-button background-color="${buttonColor}" font-size="16px" />
    </mj-attributes>
  </mj-head>
  <mj-body background-color="${background}">
    <mj-section>
      <mj-column>
${blocks.map((block) => `        ${lineOf(block)}\n`).join('')}      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`
}

/** Returns the index of the block on a line of the MJML. `line` is from 1. Undefined where there is none. */
export function blockOnLine({ blocks }: BlockMessage, line: number | null): number | undefined {
  const index = (line ?? 0) - 1 - linesBefore
  return index >= 0 && index < blocks.length ? index : undefined
}

const align = '(left|center|right)'
const colour = '(#[0-9a-f]{6})'

/** The tags that the editor of a text writes. It would drop any other. */
const textTag = /^<(?:\/?(?:p|strong|em|ul|ol|li)|ol(?: (?:start|type)="\w+")+|br|a href="[^"<>]*"|\/a)>$/

type Read = { pattern: RegExp; block: (values: string[]) => Block | null }

/** How each line is read. A missing group is an empty text. */
const readers: readonly Read[] = [
  {
    pattern: new RegExp(`^<mj-text align="${align}"><h([12])>([^<>]*)</h\\2></mj-text>$`),
    block: ([of, level, text = '']) => ({
      kind: 'heading',
      text: unescaped(text),
      level: level === '1' ? 1 : 2,
      align: of as Alignment,
    }),
  },
  {
    pattern: new RegExp(`^<mj-text align="${align}">(.*)</mj-text>$`),
    block: ([of, html = '']) =>
      (html.match(/<[^>]*>?/g) ?? []).every((tag) => textTag.test(tag))
        ? { kind: 'text', html, align: of as Alignment }
        : null,
  },
  {
    pattern: /^<mj-image src="([^"]*)" alt="([^"]*)"(?: width="(\d+)px")?(?: href="([^"]*)")? \/>$/,
    block: ([src = '', alt = '', width = '', href = '']) => ({
      kind: 'image',
      src: unescaped(src),
      alt: unescaped(alt),
      width,
      href: unescaped(href),
    }),
  },
  {
    pattern: new RegExp(`^<mj-button align="${align}" href="([^"]*)">([^<>]*)</mj-button>$`),
    block: ([of, href = '', text = '']) => ({
      kind: 'button',
      text: unescaped(text),
      href: unescaped(href),
      align: of as Alignment,
    }),
  },
  { pattern: /^<mj-divider .*\/>$/, block: () => ({ kind: 'divider' }) },
  { pattern: /^<mj-spacer height="(\d+)px" \/>$/, block: ([height = '']) => ({ kind: 'space', height }) },
]

/** Returns the blocks that MJML was written from, or null when they would be written in another way. */
export function blocksOfMjml(mjml: string): BlockMessage | null {
  const tags: string[] = []
  // A tag of Liquid may have any character in it.
  const withTags = (text: string) => text.replace(/\ue000(\d+)\ue001/g, (_, index) => tags[Number(index)] ?? '')
  const mark = (tag: string) => `\ue000${tags.push(tag) - 1}\ue001`
  const lines = mjml.split('\n').map((line) => replaceLiquid(line, { ofTag: mark }))
  const background = new RegExp(`background-color="${colour}"`).exec(lines[8] ?? '')?.[1]
  const buttonColor = new RegExp(`background-color="${colour}"`).exec(lines[5] ?? '')?.[1]
  const end = lines.findIndex((line, index) => index >= linesBefore && line.trim() === '</mj-column>')
  if (background === undefined || buttonColor === undefined || end < 0 || end - linesBefore > blockLimit) return null
  const blocks: Block[] = []
  for (const line of lines.slice(linesBefore, end)) {
    const block = readLine(line.trim(), withTags)
    if (block === null) return null
    blocks.push(block)
  }
  const message = { background, buttonColor, blocks }
  return mjmlOfBlocks(message) === mjml ? message : null
}

function readLine(line: string, withTags: (text: string) => string): Block | null {
  for (const { pattern, block } of readers) {
    const values = pattern.exec(line)?.slice(1)
    if (values !== undefined) return withLiquid(block(values), withTags)
  }
  return null
}

/** Puts the tags of Liquid back into each text of a block. */
function withLiquid(block: Block | null, withTags: (text: string) => string): Block | null {
  if (block === null) return null
  const texts = Object.entries(block).map(([name, value]) => [
    name,
    typeof value === 'string' ? withTags(value) : value,
  ])
  return Object.fromEntries(texts) as Block
}

/** The MJML of a new message. */
export const firstMjml: string = mjmlOfBlocks(firstMessage)
