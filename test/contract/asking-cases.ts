import type { Db } from '../../server/database/connection.ts'

const doubleOptIn = { from: 'news@nobodys.example' }

/** How operations of audiences that ask people to confirm come to be impossible, by operation. */
export function askingCases(db: () => Db) {
  return {
    createAudience: { json: { name: 'Asking', doubleOptIn } },
    updateAudience: { json: { doubleOptIn } },
    addContactBatch: {
      forbid: ({ audienceId = '' }) =>
        db()
          .updateTable('audiences')
          .set({ double_opt_in: JSON.stringify({ ...doubleOptIn, subject: null, text: null }) })
          .where('id', '=', audienceId)
          .execute(),
      json: { contacts: [{ email: 'asked@example.com' }] },
    },
    sendContactConfirmation: {
      forbid: ({ audienceId = '' }) =>
        db().updateTable('contacts').set({ status: 'active' }).where('audience_id', '=', audienceId).execute(),
      json: {},
    },
  } satisfies Record<string, { forbid?: (parameters: Record<string, string>) => Promise<unknown>; json: object }>
}
