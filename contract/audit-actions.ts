/** What the audit log has entries of: action → meaning. The server, the published spec and the documents read it. */
export const auditActions = {
  'account.plan_changed': 'An operator of the service gave the account another plan.',
  'api_key.created': 'An API key was made.',
  'api_key.revoked': 'An API key was revoked.',
  'api_key.deleted': 'An API key was deleted.',
  'member.invited': 'A person was invited to the account.',
  'member.joined': 'A person became a member of the account.',
  'member.role_changed': 'A member got another role.',
  'member.removed': 'A member was removed from the account.',
  'invitation.deleted': 'An invitation was taken back.',
  'session.signed_in': 'A user signed in.',
  'session.signed_out': 'A user signed out.',
  'session.ended': 'A session was ended from another one.',
  'user.renamed': 'A user changed their name.',
  'user.operator_added': 'A user was marked as an operator of the service.',
  'user.operator_removed': 'A user is no operator of the service any more.',
  'password.changed': 'A user changed or reset their password.',
  'password.reset_link_created': 'The command line made a link that sets a new password of a user.',
  'totp.enabled': 'A user began to sign in with a second factor.',
  'totp.disabled': 'A user no longer signs in with a second factor.',
  'totp.recovery_code_used': 'A recovery code replaced the second factor of a user.',
  'passkey.added': 'A user added a passkey.',
  'passkey.renamed': 'A user gave a passkey another name.',
  'passkey.removed': 'A user removed a passkey.',
  'identity.linked': 'A user linked themselves to a user of the identity provider.',
  'identity.unlinked': 'A user removed the link to a user of the identity provider.',
  'passkey.refused': 'A passkey was refused because its counter went back: there may be a copy of it.',
  'webhook.created': 'A webhook was made.',
  'webhook.updated': 'A webhook was changed.',
  'webhook.deleted': 'A webhook was deleted.',
  'webhook.secret_rotated': 'The secret of a webhook was replaced.',
  'domain.created': 'A sending domain was added.',
  'domain.keys_rotated': 'A sending domain was given its next keys.',
  'domain.deleted': 'A sending domain was deleted.',
} as const satisfies Record<string, string>

export type AuditAction = keyof typeof auditActions

/** The kinds of objects that entries are about. */
export const auditTargets = ['account', 'api_key', 'user', 'invitation', 'session', 'webhook', 'domain'] as const

export type AuditTarget = (typeof auditTargets)[number]

/** Who can act: an API key, a user of the dashboard, a customer in the portal, or the operator on the command line. */
export const actorTypes = ['key', 'user', 'portal_session', 'command_line'] as const

export type ActorType = (typeof actorTypes)[number]
