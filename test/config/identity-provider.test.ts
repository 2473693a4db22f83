import { expect, test } from 'vitest'
import { readConfig } from '../../server/config/config.ts'

const all = { OIDC_ISSUER: 'https://login.example.com', OIDC_CLIENT_ID: 'postern', OIDC_CLIENT_SECRET: 'hush' }
test('the identity provider is named after its host, unless OIDC_NAME says otherwise', () => {
  const provider = { issuer: 'https://login.example.com', clientId: 'postern', clientSecret: 'hush' }
  expect(readConfig(all).identityProvider).toEqual({ ...provider, name: 'login.example.com' })
  expect(readConfig({ ...all, OIDC_NAME: 'Example' }).identityProvider).toEqual({ ...provider, name: 'Example' })
})

test('the identity provider needs issuer, client and secret together, and https', () => {
  expect(() => readConfig({ ...all, OIDC_CLIENT_ID: '' })).toThrow('are needed together')
  expect(() => readConfig({ OIDC_NAME: 'Example' })).toThrow('are needed together')
  for (const OIDC_ISSUER of ['http://login.example.com', 'https://login.example.com/?a=b', 'login'])
    expect(() => readConfig({ ...all, OIDC_ISSUER })).toThrow('OIDC_ISSUER is')
})
