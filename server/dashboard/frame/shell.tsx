import { AppShell, Burger, Group, ScrollArea } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useParams, useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { sessionQuery } from '../api/query-client.ts'
import { ScopeProvider } from '../api/scope.tsx'
import { AccountMenu } from './account-menu.tsx'
import { AllowedScreen } from './allowed-screen.tsx'
import { NotFound } from './fault.tsx'
import { Wordmark } from './mark.tsx'
import { ModeSwitch } from './mode-switch.tsx'
import { NavigationLinks } from './navigation-links.tsx'
import { UserMenu } from './user-menu.tsx'

/** The frame of all screens of an account: navigation, account, mode. */
export function Shell() {
  const { account: accountId, mode } = useParams({ strict: false })
  const { data: session, error } = useQuery(sessionQuery)
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const router = useRouter()

  useEffect(() => {
    if (error === null) return
    void router.navigate({ to: '/sign-in', search: { next: router.state.location.href } })
  }, [error, router])

  const account = session?.accounts.find(({ id }) => id === accountId)
  if (session === undefined) return null
  if (account === undefined || (mode !== 'live' && mode !== 'test')) return <NotFound />
  return (
    <ScopeProvider session={session} account={account} mode={mode}>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell
        header={{ height: { base: 48, sm: 0 } }}
        navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
        padding={{ base: 'md', sm: 'xl' }}
        transitionDuration={0}
      >
        <AppShell.Header hiddenFrom="sm" px="md">
          <Group h="100%" justify="space-between">
            <Wordmark />
            <Burger opened={isOpen} onClick={toggle} size="sm" aria-label="Navigation" aria-expanded={isOpen} />
          </Group>
        </AppShell.Header>
        <AppShell.Navbar className="navbar" data-open={isOpen}>
          <AppShell.Section p="md" pb="xs">
            <Group visibleFrom="sm" mb="md">
              <Wordmark />
            </Group>
            <AccountMenu />
            <ModeSwitch />
          </AppShell.Section>
          <AppShell.Section grow component={ScrollArea} px="xs">
            <NavigationLinks onFollow={close} />
          </AppShell.Section>
          <AppShell.Section p="xs">
            <UserMenu />
          </AppShell.Section>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1} className="main">
          {mode === 'test' && (
            <p className="test-strip">
              <strong>Test mode.</strong> Nothing is sent to recipients. Emails, events, webhooks and keys of test mode
              are separate from live ones.
            </p>
          )}
          <div className="content">
            <AllowedScreen />
          </div>
        </AppShell.Main>
      </AppShell>
    </ScopeProvider>
  )
}
