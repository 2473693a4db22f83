/**
 * How long a test waits for what has to come. It ends a test for which it never comes, and says nothing of how
 * fast it comes: on an idle machine that takes milliseconds, on a busy one seconds. Milliseconds.
 */
export const patienceMs = 30_000
