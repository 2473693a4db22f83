import type { RowOf } from '../../api/hooks.ts'

type Reason = NonNullable<RowOf<'GET /v1/webhooks'>['disabledReason']>

/** Why a webhook is disabled, to stand behind "because". */
export const disabledReasons: Readonly<Record<Reason, string>> = {
  manual: 'someone switched it off',
  gone: 'the endpoint answered 410',
  failing: 'it failed for five days',
}
