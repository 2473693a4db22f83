/** A long text of an answer that is read piece by piece while it is written, and never in memory as a whole. */
export class StreamedText {
  /** Reads it from its beginning. Throws when it is gone meanwhile. */
  readonly pieces: () => AsyncIterable<string>

  constructor(pieces: () => AsyncIterable<string>) {
    this.pieces = pieces
  }
}
