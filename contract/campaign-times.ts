import { z } from 'zod'
import { boundedString, timestamp } from './fields.ts'

/*
 * When messages of a campaign leave.
 */

/** The contact property that holds the time zone of a person. */
export const timezoneProperty = 'timezone'

const localTimePattern = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$/

/** A time without a zone. */
export const localTime = boundedString(19, { fault: 'must be a time without a zone such as 2026-12-01T09:00:00' })
  .regex(localTimePattern, 'must be a time without a zone such as 2026-12-01T09:00:00')
  .meta({ example: '2026-12-01T09:00:00' })

/** Far longer than the longest name of the IANA database. */
const maxZoneLength = 64

/** The name of a time zone. Whether there is one of that name, only the service knows. */
export const timezone = boundedString(maxZoneLength, { fault: 'must be an IANA time zone such as Europe/Berlin' })
  .regex(/^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/, 'must be an IANA time zone such as Europe/Berlin')
  .meta({ example: 'Europe/Berlin' })

/** Why a campaign that is sending writes to nobody just now. */
export const campaignWaiting = z
  .object({
    reason: z.enum(['local_time']).meta({
      description: '`local_time`: for the people who are left, the local time is still to come.',
    }),
    until: timestamp.meta({ description: 'When it goes on.' }),
  })
  .meta({ id: 'CampaignWaiting', description: 'What a campaign waits for.' })
