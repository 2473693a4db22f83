import { State } from '../../components/state.tsx'
import { ExactTime } from '../../components/time.tsx'
import type { EmailDetails } from './email.ts'

type Props = { entries: EmailDetails['timeline'] }

/** The timeline of an email, oldest entry first, with the replies of the mail servers verbatim. */
export function Timeline({ entries }: Props) {
  return (
    <ol className="timeline">
      {entries.map(({ at, type, recipient, detail, reply, host }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries are only appended
        <li key={index}>
          <span className="dimmed">
            <ExactTime at={at} />
          </span>
          <State of={type} />
          <span className="said">
            {[recipient, detail].filter((part) => part !== null).join(': ')}
            {reply !== null && <span className="reply">{host === null ? reply : `${host}: ${reply}`}</span>}
          </span>
        </li>
      ))}
    </ol>
  )
}
