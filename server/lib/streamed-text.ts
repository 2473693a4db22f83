/** A long text in a response that is read in pieces while it is written, so that it is never in memory as a whole. */
export class StreamedText {
  /** Reads the text from its start. Throws when the text no longer exists. */
  readonly pieces: () => AsyncIterable<string>

  constructor(pieces: () => AsyncIterable<string>) {
    this.pieces = pieces
  }
}
