/* Headers come from outside: a field can be missing, empty, or hold only invisible characters. */

/** A character that can be seen: no space, no control character, and not one without a width. */
const visible = /[^\p{White_Space}\p{Control}\p{Default_Ignorable_Code_Point}]/u

/** Returns `text`, or `otherwise` where there is nothing to be seen: the name of a link or a file must not be empty. */
export function visibleOr(text: string | null, otherwise: string): string {
  return text !== null && visible.test(text) ? text : otherwise
}

/** Returns the sender of a message, or says that there is none. */
export function senderOf({ from }: { from: string | null }): string {
  return visibleOr(from, '(no sender)')
}

/** Returns the subject of a message, or says that there is none. */
export function subjectOf({ subject }: { subject: string | null }): string {
  return visibleOr(subject, '(no subject)')
}
