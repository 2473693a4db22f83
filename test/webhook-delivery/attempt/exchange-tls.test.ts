import { expect, test } from 'vitest'
import { certificate, testAuthority } from '../../support/certificates.ts'
import { startReceiver } from '../../support/receiver.ts'
import { post, testExchange } from './exchange-setup.ts'

const ca = testAuthority()
const resolve = async () => [{ address: '127.0.0.1', family: 4 }]

test('an exchange reaches an endpoint whose certificate is valid, by name and by address', async () => {
  await using receiver = await startReceiver({ tls: certificate('valid') })
  const exchange = testExchange({ ca, resolve })
  expect(await post(exchange, receiver.url)).toMatchObject({ kind: 'answered', status: 200 })
  expect(await post(exchange, `https://hook.test:${receiver.port}/`)).toMatchObject({ kind: 'answered', status: 200 })
  expect(receiver.requests.map(({ headers }) => headers.host)).toEqual([
    `127.0.0.1:${receiver.port}`,
    `hook.test:${receiver.port}`,
  ])
})

test.each([
  ['expired', 'its certificate has expired: renew it'],
  ['other-name', 'its certificate is for another name than the one in the URL'],
  ['self-signed', 'its certificate is self-signed: use one of a public authority'],
] as const)('an exchange over TLS says what is wrong with a certificate: %s', async (name, fault) => {
  await using receiver = await startReceiver({ tls: certificate(name) })
  expect(await post(testExchange({ ca, resolve }), `https://hook.test:${receiver.port}/`)).toMatchObject({
    kind: 'failed',
    stage: 'before-sending',
    reason: 'tls',
    message: `No secure connection to the endpoint: ${fault}.`,
  })
  expect(receiver.requests).toEqual([])
})

test('an exchange over TLS trusts no authority that is not public, unless it is handed in', async () => {
  await using receiver = await startReceiver({ tls: certificate('valid') })
  expect(await post(testExchange(), receiver.url)).toMatchObject({
    reason: 'tls',
    message:
      'No secure connection to the endpoint: its certificate is not of a public authority, or the intermediate certificates are not served with it.',
  })
  expect(receiver.requests).toEqual([])
})

test('an exchange over TLS judges the certificate again though a session could be resumed', async () => {
  await using receiver = await startReceiver({ tls: certificate('valid') })
  const exchange = testExchange({ ca, resolve, connectionsPerOrigin: 0 })
  await post(exchange, `https://hook.test:${receiver.port}/`)
  expect(await post(exchange, `https://hook.test:${receiver.port}/`)).toMatchObject({ status: 200 })
  expect(await post(exchange, `https://other.test:${receiver.port}/`)).toMatchObject({ reason: 'tls' })
})

test('an exchange over TLS says that the port speaks no TLS', async () => {
  await using receiver = await startReceiver()
  expect(await post(testExchange(), `https://127.0.0.1:${receiver.port}/`)).toMatchObject({
    reason: 'tls',
    message:
      'No secure connection to the endpoint: it does not speak TLS on this port: check the port, or whether the URL should begin with http://.',
  })
})

test('an exchange over TLS says that no version of the protocol is shared', async () => {
  await using receiver = await startReceiver({ tls: { ...certificate('valid'), maxVersion: 'TLSv1.1' } })
  expect(await post(testExchange({ ca }), receiver.url)).toMatchObject({
    reason: 'tls',
    message: 'No secure connection to the endpoint: it offers no TLS version from 1.2 on: enable TLS 1.2 or 1.3.',
  })
})
