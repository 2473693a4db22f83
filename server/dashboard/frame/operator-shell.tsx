import { Text } from '@mantine/core'
import { IconArrowLeft } from '@tabler/icons-react'
import { Link, Outlet } from '@tanstack/react-router'
import { OperatorScopeProvider } from '../api/scope.tsx'
import { NotFound } from './fault.tsx'
import { Frame } from './frame.tsx'
import { operatorNavigation } from './navigation.ts'
import { useSession } from './use-session.ts'

/** The frame of the screens for operators, which are of no account. For others, nothing is here. */
export function OperatorShell() {
  const session = useSession()
  if (session === undefined) return null
  if (!session.user.isOperator) return <NotFound />
  return (
    <OperatorScopeProvider session={session}>
      <Frame
        navigation={operatorNavigation}
        top={
          <>
            <div className="account-button">
              <span className="account-name">
                <Text span fw={550}>
                  Operator
                </Text>
                <Text span fz="xs" c="dimmed">
                  all accounts
                </Text>
              </span>
            </div>
            {session.accounts.length > 0 && (
              <Link to="/" className="navigation-link to-accounts">
                <IconArrowLeft size={17} stroke={1.6} aria-hidden />
                Back to your account
              </Link>
            )}
          </>
        }
      >
        <Outlet />
      </Frame>
    </OperatorScopeProvider>
  )
}
