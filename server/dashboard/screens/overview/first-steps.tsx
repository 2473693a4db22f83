import { IconCircle, IconCircleCheck } from '@tabler/icons-react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'

type Step = { to: string; title: string; text: string; isDone: boolean }

/** The first steps in an account that has sent nothing in this mode. */
export function FirstSteps() {
  const { mode, can } = useScope()
  const query = { limit: 1 }
  const domains = useGet('GET /v1/domains', { query: { limit: 100 } }, { enabled: can('domains:read') })
  const keys = useGet('GET /v1/api-keys', { query }, { enabled: can('api_keys:read') })
  const webhooks = useGet('GET /v1/webhooks', { query }, { enabled: can('webhooks:read') })
  const steps: (Step & { isShown: boolean })[] = [
    {
      to: '/domains',
      title: 'Add your domain',
      text: 'Publish its DNS records, so that live emails can be sent from it.',
      isDone: domains.data?.data.some(({ status }) => status === 'verified') ?? false,
      isShown: mode === 'live' && can('domains:read'),
    },
    {
      to: '/settings/api-keys',
      title: 'Create an API key',
      text: `Your program sends emails with it. A key for ${mode} mode sends ${mode} emails.`,
      isDone: (keys.data?.data.length ?? 0) > 0,
      isShown: can('api_keys:read'),
    },
    {
      to: '/emails',
      title: 'Send an email',
      text: 'With the key, or by the button on the screen of emails.',
      isDone: false,
      isShown: can('emails:send'),
    },
    {
      to: '/webhooks',
      title: 'Add a webhook',
      text: 'Your program then hears when an email is delivered, bounces or is opened.',
      isDone: (webhooks.data?.data.length ?? 0) > 0,
      isShown: can('webhooks:read'),
    },
  ]
  return (
    <Section title="First steps">
      {unread(domains, 'The domains')} {unread(keys, 'The keys')} {unread(webhooks, 'The webhooks')}
      <ol className="steps">
        {steps
          .filter(({ isShown }) => isShown)
          .map(({ to, title, text, isDone }) => (
            <li key={to}>
              {isDone ? (
                <IconCircleCheck size={20} stroke={1.6} aria-label="Done" className="done" />
              ) : (
                <IconCircle size={20} stroke={1.6} aria-label="To do" />
              )}
              <div>
                <ScreenLink to={to}>{title}</ScreenLink>
                <p>{text}</p>
              </div>
            </li>
          ))}
      </ol>
    </Section>
  )
}
