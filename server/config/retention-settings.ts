import { z } from 'zod'
import { numberSetting, setting, yesOrNo } from './setting-kinds.ts'

/** The settings of what is kept, and for how long. */
export const retentionSettings = {
  REQUEST_LOGS: setting(
    {
      unit: 'true or false',
      default: 'true',
      meaning:
        'Whether requests of API keys are kept for 7 days, for `GET /v1/request-logs` and the dashboard. Secrets and the contents of emails are never kept.',
      allowed: '"true" or "false"',
    },
    yesOrNo,
  ),
  RETENTION_DAYS: setting(
    {
      unit: 'days',
      default: '30',
      meaning: 'Events, attempts and emails older than this are deleted. Fractions are allowed.',
      allowed: 'a number of days above 0, up to 36,500, such as 30 or 0.5',
    },
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number)
      .pipe(z.number().positive().max(36_500)),
  ),
  STATISTICS_DAYS: numberSetting({
    unit: 'days',
    default: 400,
    min: 1,
    max: 36_500,
    meaning:
      'Figures of statistics by day that are older than this are deleted. Figures by hour are kept for 31 days at most.',
  }),
}
