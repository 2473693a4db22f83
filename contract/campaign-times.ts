import { z } from 'zod'
import { boundedString, list, timestamp } from './fields.ts'

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

export const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const

const timeFault = 'must be a time of day such as 09:00'
const timeOfDay = boundedString(5, { fault: timeFault }).regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, timeFault)

const windowMeaning =
  'The hours in which it sends. Outside of them it rests, and what is queued is taken back; emails that are tried again after a first attempt do not wait for them.'

const windowFields = {
  from: timeOfDay.meta({ description: 'When it begins.', example: '09:00' }),
  to: timeOfDay.meta({
    description: 'When it ends: on the day after, if it is earlier than `from`. It must not be `from`.',
    example: '18:00',
  }),
  timezone: timezone.meta({ description: 'The time zone of these times.' }),
}

const windowExample = { from: '09:00', to: '18:00', timezone: 'Europe/Berlin' }

/** The hours of the day in which a campaign sends, as they are written. */
export const sendWindow = z
  .strictObject({
    ...windowFields,
    days: list(z.enum(weekdays), { min: 1, max: weekdays.length })
      .optional()
      .meta({ description: 'The days on which it begins. Default: all.' }),
  })
  .meta({ id: 'SendWindow', description: windowMeaning, example: windowExample })

/** The same as it is shown. */
export const campaignSendWindow = z
  .object({ ...windowFields, days: z.array(z.enum(weekdays)).meta({ description: 'The days on which it begins.' }) })
  .meta({ id: 'CampaignSendWindow', description: windowMeaning, example: { ...windowExample, days: [...weekdays] } })

export type SendWindow = z.infer<typeof campaignSendWindow>

/** Why a campaign that is sending makes no emails at present. */
export const campaignWaiting = z
  .object({
    reason: z.enum(['local_time', 'send_window', 'ab_test']).meta({
      description:
        '`local_time`: for the people who are left, the local time is still to come. `send_window`: the hours in which it sends. `ab_test`: the choice of the winner of its A/B test.',
    }),
    until: timestamp
      .nullable()
      .meta({ description: 'When it goes on. Null: when the winner of its A/B test is chosen by `POST …/winner`.' }),
  })
  .meta({ id: 'CampaignWaiting', description: 'What a campaign waits for.' })
