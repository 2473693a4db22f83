import { expect, test } from 'vitest'
import { faultOfLinks } from '../../server/email-delivery/link-faults.ts'

test.each([
  'https://mail.example.com',
  'https://mail.example.com/postern',
  'https://localhost.example.com',
  'https://10.0.0.5',
])('links can lead to %s', (url) => {
  expect(faultOfLinks(url)).toBeNull()
})

test.each([
  [null, 'not set'],
  ['http://mail.example.com', 'not https'],
  ['https://localhost', 'this machine alone'],
  ['https://LOCALHOST.:3000', 'this machine alone'],
  ['https://app.localhost/x', 'this machine alone'],
  ['https://127.1.2.3', 'this machine alone'],
  ['https://0x7f.1', 'this machine alone'],
  ['https://[::1]:3000', 'this machine alone'],
  ['https://[::ffff:127.0.0.1]', 'this machine alone'],
  ['https://0.0.0.0', 'this machine alone'],
])('links cannot lead to %s, and it is said why', (url, why) => {
  expect(faultOfLinks(url)).toContain(why)
})
