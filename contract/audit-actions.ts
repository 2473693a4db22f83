/** What the audit log has entries of: action → meaning. The server, the published spec and the documents read it. */
export const auditActions = {
  'api_key.created': 'An API key was made.',
  'api_key.revoked': 'An API key was revoked.',
  'api_key.deleted': 'An API key was deleted.',
  'member.invited': 'Somebody was invited to the account.',
  'member.joined': 'Somebody became a member of the account.',
  'member.role_changed': 'A member got another role.',
  'member.removed': 'A member was removed from the account.',
  'invitation.deleted': 'An invitation was taken back.',
  'session.signed_in': 'A user signed in.',
  'session.signed_out': 'A user signed out.',
  'session.ended': 'A session was ended from another one.',
  'password.changed': 'A user changed or reset their password.',
  'totp.enabled': 'A user began to sign in with a second factor.',
  'totp.disabled': 'A user no longer signs in with a second factor.',
  'webhook.created': 'A webhook was made.',
  'webhook.updated': 'A webhook was changed.',
  'webhook.deleted': 'A webhook was deleted.',
  'webhook.secret_rotated': 'The secret of a webhook was replaced.',
  'domain.created': 'A sending domain was added.',
  'domain.deleted': 'A sending domain was deleted.',
} as const satisfies Record<string, string>

export type AuditAction = keyof typeof auditActions

/** The kinds of objects that entries are about. */
export const auditTargets = ['api_key', 'user', 'invitation', 'session', 'webhook', 'domain'] as const

export type AuditTarget = (typeof auditTargets)[number]

/** Who can act: an API key, a user of the dashboard, or the operator on the command line. */
export const actorTypes = ['key', 'user', 'command_line'] as const

export type ActorType = (typeof actorTypes)[number]
