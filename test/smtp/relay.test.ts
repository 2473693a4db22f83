import { expect, test } from 'vitest'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'
import { conversation, relayTo, sendOnce } from './smtp-setup.ts'

test('a relay takes a message, in two round trips', async () => {
  await using server = await startScriptedSmtp()
  const sent = conversation({ to: ['b@receiver.test', 'c@other.test'] })

  const outcomes = await sendOnce(relayTo(server), sent)

  expect(outcomes).toEqual([
    { kind: 'accepted', final: false, reply: '250 2.0.0 Taken', host: '127.0.0.1' },
    { kind: 'accepted', final: false, reply: '250 2.0.0 Taken', host: '127.0.0.1' },
  ])
  expect(server.messages).toEqual([
    {
      mailFrom: 'bounces@send.sender.test',
      mailParameters: `SIZE=${sent.message.length} RET=HDRS`,
      recipients: [
        { address: 'b@receiver.test', parameters: 'ORCPT=rfc822;b@receiver.test' },
        { address: 'c@other.test', parameters: 'ORCPT=rfc822;c@other.test' },
      ],
      data: sent.message,
      connection: 0,
      isSecure: false,
      user: null,
    },
  ])
  expect(server.commands.map(({ line }) => line.split(' ')[0])).toEqual([
    'EHLO',
    'MAIL',
    'RCPT',
    'RCPT',
    'DATA',
    'QUIT',
  ])
})
