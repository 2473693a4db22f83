/** The keys of the first account. */
export type FirstKeys = { test: string; live: string }

/**
 * What the terminal shows when the service is up: on the first start the keys, which are shown only
 * then, with a line to try one; in the end, always, the address, and whether email is really sent.
 *
 * @param url Of the service, without a slash at the end.
 */
export function welcome(url: string, keys: FirstKeys | null, { capturing }: { capturing: boolean }): string {
  const first = keys === null ? '' : `${firstStart(url, keys)}\n`
  const captured = capturing ? `No email leaves this machine: it is captured, and shown at ${url}/captured\n` : ''
  return `${first}Postern listens on ${url}, with its documentation at ${url}/docs\n${captured}`
}

/** What it shows for a process that is no API. */
export function welcomeWorker(url: string, { capturing }: { capturing: boolean }): string {
  const captured = capturing ? 'No email leaves this machine: it is captured, and shown by the API at /captured\n' : ''
  return `Postern works, and answers ${url}/readyz and ${url}/metrics\n${captured}`
}

function firstStart(url: string, { test, live }: FirstKeys): string {
  return `
This is the first start. An account was made for you, with two keys; they are shown only now:

  test key  ${test}
  live key  ${live}

Try one:

  curl -H 'Authorization: Bearer ${test}' ${url}/v1/event-types
`
}
