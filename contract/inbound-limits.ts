/* Without zod, so that the dashboard can import it. */

/** Bytes that are kept of a message that came back. What is behind them is gone. */
export const keptInboundBytes = 1_048_576
