import { useParams } from '@tanstack/react-router'
import { ScopeProvider } from '../api/scope.tsx'
import { AccountMenu } from './account-menu.tsx'
import { AllowedScreen } from './allowed-screen.tsx'
import { NotFound } from './fault.tsx'
import { Frame } from './frame.tsx'
import { ModeSwitch } from './mode-switch.tsx'
import { navigation } from './navigation.ts'
import { useSession } from './use-session.ts'

/** The frame of all screens of an account: navigation, account, mode. */
export function Shell() {
  const { account: accountId, mode } = useParams({ strict: false })
  const session = useSession()
  const account = session?.accounts.find(({ id }) => id === accountId)
  if (session === undefined) return null
  if (account === undefined || (mode !== 'live' && mode !== 'test')) return <NotFound />
  return (
    <ScopeProvider session={session} account={account} mode={mode}>
      <Frame
        navigation={navigation}
        top={
          <>
            <AccountMenu />
            <ModeSwitch />
          </>
        }
        strip={
          mode === 'test' && (
            <p className="test-strip">
              <strong>Test mode.</strong> Nothing is sent to recipients. Emails, events, webhooks and keys of test mode
              are separate from live ones.
            </p>
          )
        }
      >
        <AllowedScreen />
      </Frame>
    </ScopeProvider>
  )
}
