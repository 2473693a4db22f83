import { AppShell, Burger, Group, ScrollArea } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { Wordmark } from './mark.tsx'
import type { NavigationGroup } from './navigation.ts'
import { NavigationLinks } from './navigation-links.tsx'
import { UserMenu } from './user-menu.tsx'

type Props = {
  /** Shown above the navigation: the account and the mode of the screens, or the operator. */
  top: ReactNode
  navigation: readonly NavigationGroup[]
  /** A strip across the top. Default: none. */
  strip?: ReactNode
  /** The screen. */
  children: ReactNode
}

/** The frame of all screens for people who are signed in. On a phone the navigation is behind a button. */
export function Frame({ top, navigation, strip, children }: Props) {
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const scrolled = useRef<HTMLDivElement>(null)
  const { pathname } = useLocation()
  // In a low window the last links are out of sight, also that of the screen that is shown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs again on another screen
  useEffect(() => {
    if (scrolled.current !== null) showCurrent(scrolled.current)
  }, [pathname, isOpen])
  return (
    <>
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
            {top}
          </AppShell.Section>
          <AppShell.Section grow component={ScrollArea} viewportRef={scrolled} px="xs">
            <NavigationLinks groups={navigation} onFollow={close} />
          </AppShell.Section>
          <AppShell.Section p="xs">
            <UserMenu />
          </AppShell.Section>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1} className="main">
          {strip}
          <div className="content">{children}</div>
        </AppShell.Main>
      </AppShell>
    </>
  )
}

/**
 * Scrolls the navigation so far that the link of the screen is in sight. Not by `scrollIntoView`, which moves the place
 * where Tab begins to the link, past the one that skips to the content.
 */
function showCurrent(scrolled: HTMLElement): void {
  const current = scrolled.querySelector('[aria-current="page"]')
  if (current === null) return
  const [inside, link] = [scrolled.getBoundingClientRect(), current.getBoundingClientRect()]
  if (link.bottom > inside.bottom) scrolled.scrollTop += link.bottom - inside.bottom
  else if (link.top < inside.top) scrolled.scrollTop -= inside.top - link.top
}
