import { Facts } from '../../components/facts.tsx'
import type { EmailDetails } from './email.ts'
import type { Message } from './message.ts'
import { MessageContent } from './message-content.tsx'

/** The content of an email as it was sent: HTML, text and headers. */
export function EmailContent({ email, message }: { email: EmailDetails; message: Message }) {
  const show = () => (
    <Facts
      of={[
        ['Opens tracked', email.trackOpens ? 'Yes' : 'No'],
        ['Clicks tracked', email.trackClicks ? 'Yes' : 'No'],
        ...Object.entries(email.headers).map(([name, value]) => [name, value] as const),
      ]}
    />
  )
  return <MessageContent message={message} more={[{ label: 'More', show }]} />
}
