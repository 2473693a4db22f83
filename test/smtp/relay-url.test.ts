import { expect, test } from 'vitest'
import { parseRelayUrl } from '../../server/smtp/relay-url.ts'

const login = { user: 'me', password: 'secret' }

test.each([
  ['smtp://relay.test', { host: 'relay.test', port: 25, tls: 'opportunistic', credentials: null }],
  ['smtp://127.0.0.1:1025/', { host: '127.0.0.1', port: 1025, tls: 'opportunistic', credentials: null }],
  ['smtp://[::1]:1025', { host: '::1', port: 1025, tls: 'opportunistic', credentials: null }],
  ['smtp://relay.test?tls=opportunistic', { host: 'relay.test', port: 25, tls: 'opportunistic', credentials: null }],
  ['smtp://relay.test?tls=required', { host: 'relay.test', port: 587, tls: 'verified', credentials: null }],
  ['smtp://me:secret@relay.test', { host: 'relay.test', port: 587, tls: 'verified', credentials: login }],
  [
    'smtp://me:secret@relay.test:2525?tls=required',
    { host: 'relay.test', port: 2525, tls: 'verified', credentials: login },
  ],
  ['smtps://me:secret@relay.test', { host: 'relay.test', port: 465, tls: 'implicit', credentials: login }],
  [
    'smtps://me%40x.test:p%2Fs%25@relay.test:4465',
    { host: 'relay.test', port: 4465, tls: 'implicit', credentials: { user: 'me@x.test', password: 'p/s%' } },
  ],
])('%s is read', (url, relay) => {
  expect(parseRelayUrl(url)).toEqual(relay)
})

test.each([
  'relay.test',
  'relay.test:25',
  'http://relay.test',
  'smtp://',
  'smtp://relay test',
  'smtp://relay%20test',
  'smtp://relay.test/path',
  'smtp://relay.test#part',
  'smtp://relay.test?tls=no',
  'smtp://relay.test?tls=required&x=1',
  'smtps://relay.test?tls=required',
  'smtp://me@relay.test',
  'smtp://me:@relay.test',
  'smtp://:secret@relay.test',
  'smtp://me:%@relay.test',
  'smtp://me:a%00b@relay.test',
  'smtp://me:secret@relay.test?tls=opportunistic',
])('%s is no relay', (url) => {
  expect(parseRelayUrl(url)).toBeNull()
})
