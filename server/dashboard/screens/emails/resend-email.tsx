import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import type { EmailDetails } from './email.ts'

/** Sends an email that has ended once more, and leads to the new one. */
export function ResendEmail({ email: { id, recipients } }: { email: EmailDetails }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const resend = useChange('POST /v1/emails/:id/resend')
  const [isAsked, setAsked] = useState(false)
  return (
    <>
      <Button variant="default" onClick={() => setAsked(true)}>
        Send again
      </Button>
      {isAsked && (
        <Confirm
          title="Send this email again?"
          action="Send again"
          isHarmless
          isRunning={resend.isPending}
          error={resend.error}
          onClose={() => setAsked(false)}
          onConfirm={() =>
            resend.mutate(
              { params: { id }, body: {} },
              {
                onSuccess: (accepted) => {
                  setAsked(false)
                  notifications.show({ message: 'The email was accepted. This is the new one.' })
                  void navigate({ to: path(`/emails/${accepted.id}`) })
                },
              },
            )
          }
        >
          It goes to {recipients.length === 1 ? 'its recipient' : `all ${recipients.length} recipients`} as a new email,
          also to those who got it. Addresses that are suppressed get nothing.
        </Confirm>
      )}
    </>
  )
}
