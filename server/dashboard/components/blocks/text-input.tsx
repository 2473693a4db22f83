import '@mantine/tiptap/styles.css'
import { RichTextEditor } from '@mantine/tiptap'
import { Link } from '@tiptap/extension-link'
import { useEditor } from '@tiptap/react'
import StarterKit from '@tiptap/starter-kit'
import { styleNonce } from '../../style-nonce.ts'
import { LinkControl } from './link-control.tsx'
import { hasLiquid, htmlForBrowser, htmlWithLiquid } from './mail-blocks.ts'

type Props = {
  label: string
  /** HTML with Liquid as it is typed. */
  value: string
  onChange: (html: string) => void
  isReadOnly: boolean
}

/** Links with an address and nothing else, also when they are pasted. */
const PlainLink = Link.extend({ addAttributes: () => ({ href: { default: null } }) }).configure({
  openOnClick: false,
  HTMLAttributes: { target: null, rel: null, class: null },
  isAllowedUri: (url, { defaultValidate }) => hasLiquid(url) || defaultValidate(url),
})

/** Paragraphs, lists, bold, italic and links: what all mail programs show. */
const extensions = [
  StarterKit.configure({
    blockquote: false,
    code: false,
    codeBlock: false,
    heading: false,
    horizontalRule: false,
    strike: false,
    underline: false,
    link: false,
  }),
  PlainLink,
]

/** A text with formatting. `value` is read when it is shown first: what is typed stands in the editor. */
export function TextInput({ label, value, onChange, isReadOnly }: Props) {
  const editor = useEditor({
    extensions,
    content: htmlForBrowser(value),
    editable: !isReadOnly,
    injectNonce: styleNonce(),
    editorProps: { attributes: { role: 'textbox', 'aria-multiline': 'true', 'aria-label': label } },
    onUpdate: ({ editor }) => onChange(htmlWithLiquid(editor.getHTML())),
  })
  return (
    <RichTextEditor editor={editor}>
      {!isReadOnly && (
        <RichTextEditor.Toolbar>
          <RichTextEditor.ControlsGroup>
            <RichTextEditor.Bold />
            <RichTextEditor.Italic />
            <LinkControl />
            <RichTextEditor.Unlink />
            <RichTextEditor.BulletList />
            <RichTextEditor.OrderedList />
          </RichTextEditor.ControlsGroup>
        </RichTextEditor.Toolbar>
      )}
      <RichTextEditor.Content />
    </RichTextEditor>
  )
}
