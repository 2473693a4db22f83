import { z } from 'zod'

export const emailStatus = z
  .enum([
    'validated',
    'scheduled',
    'queued',
    'sending',
    'sent',
    'delivered',
    'bounced',
    'failed',
    'suppressed',
    'canceled',
  ])
  .meta({
    id: 'EmailStatus',
    description:
      'How far an email is: `validated` (by a test key: never sent), `scheduled`, `queued`, `sending`; then `delivered` if all recipients that were written to have it, `sent` if any server took it, else what kept it from all of them. Recipients that are `suppressed` were not written to, and count only where all are: see `recipients` of the email.',
  })

export const recipientStatus = z
  .enum([
    'validated',
    'queued',
    'sending',
    'deferred',
    'accepted',
    'delivered',
    'bounced',
    'complained',
    'failed',
    'suppressed',
    'canceled',
  ])
  .meta({
    id: 'RecipientStatus',
    description:
      "How far an email is on its way to one recipient; `accepted`: a relay took it, `delivered`: the recipient's server took it, or the relay says that it was delivered.",
  })
