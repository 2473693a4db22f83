/** Milliseconds in which a button says that it has copied. */
export const copiedMs = 1500

/** Says how to copy a text that was selected because the page may not write to the clipboard. */
export function SelectedNote() {
  return (
    <output className="note selected-note">
      This page cannot copy by itself. The text is selected: copy it with Ctrl+C, on a Mac with ⌘C, on a phone by
      touching and holding it.
    </output>
  )
}
