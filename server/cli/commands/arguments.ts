import { InvalidArgumentError } from 'commander'

const maxNameLength = 200

/** Parses a name for people: 1 to 200 characters on one line. */
export function nameArgument(value: string): string {
  const name = value.trim()
  if (name === '' || name.length > maxNameLength || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`It must be 1 to ${maxNameLength} characters on one line.`)
  }
  return name
}
