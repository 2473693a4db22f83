/** A long text in a response that is read in pieces while it is written, so that it is never in memory as a whole. */
export class StreamedText {
  /** Reads the text from its start. Throws when the text no longer exists. */
  readonly pieces: () => AsyncIterable<string>

  constructor(pieces: () => AsyncIterable<string>) {
    this.pieces = pieces
  }

  /** Reads all of the text into memory. */
  async whole(): Promise<string> {
    let text = ''
    for await (const piece of this.pieces()) text += piece
    return text
  }
}

/**
 * Returns bytes in base64 as a text that is read in pieces.
 *
 * @param slices Yields the bytes from their start. All slices but the last have a multiple of 3 bytes.
 */
export function streamedBase64(slices: () => AsyncIterable<Buffer>): StreamedText {
  return new StreamedText(async function* () {
    for await (const slice of slices()) yield slice.toString('base64')
  })
}

/** An object of an answer as its client sees it. */
export type Written<T> = { [Name in keyof T]: Exclude<T[Name], StreamedText> }

/** Casts an object with streamed texts to what it is once it is written. */
export function written<T extends object>(body: T): Written<T> {
  return body as Written<T>
}
