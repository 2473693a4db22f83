/** Characters of a subject that are searched. */
export const subjectKeyLength = 60
/** UTF-16 units of a subject that its key is made of, so that a long one costs no more. */
const lookedAt = 400

/**
 * Returns the key by which subjects are searched: the first 60 characters without letter case, in one Unicode normal
 * form, without invisible characters, and with one space for each run of spaces. Empty: nothing of it can be seen.
 */
export function subjectKey(subject: string): string {
  const text = subject.slice(0, lookedAt).toWellFormed()
  if (isPlain.test(text)) return text.trim().slice(0, subjectKeyLength).trimEnd().toLowerCase()
  const visible = text.normalize('NFKC').replaceAll(/\s+/gu, ' ').replaceAll(invisible, '').trim()
  // A sigma at the end of a word has a lower case of its own, and a prefix ends anywhere.
  const characters = Array.from(visible.toLowerCase().replaceAll('ς', 'σ'))
  return characters.slice(0, subjectKeyLength).join('').trimEnd()
}

/** ASCII that can be seen, with single spaces. */
const isPlain = /^(?:[!-~]| (?! ))*$/
/** Control and format characters, characters that are not assigned, and fillers that show nothing. */
export const invisible = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu
