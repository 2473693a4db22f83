import { Anchor, Text, Title } from '@mantine/core'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useScope } from '../api/scope.tsx'

/** The frame of all screens of the portal: none of Postern's own names, since it stands in the site of others. */
export function PortalFrame() {
  const { mode } = useScope()
  return (
    <main className="main portal">
      <nav aria-label="Portal" className="portal-tabs">
        <Tab to="/webhooks">Webhooks</Tab>
        <Tab to="/event-types">Event types</Tab>
      </nav>
      {mode === 'test' && (
        <p className="test-strip">
          <strong>Test mode.</strong> These webhooks receive events of test mode.
        </p>
      )}
      <div className="content">
        <Outlet />
      </div>
    </main>
  )
}

function Tab({ to, children }: { to: string; children: string }) {
  const { pathname } = useLocation()
  const isCurrent = pathname === to || pathname.startsWith(`${to}/`)
  return (
    <Anchor component={Link} to={to} {...(isCurrent && { 'aria-current': 'page' as const })}>
      {children}
    </Anchor>
  )
}

/** Stands in place of the portal where it cannot be shown. */
export function PortalNotice({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="main portal">
      <Title order={1}>{title}</Title>
      <Text mt="xs">{children}</Text>
    </main>
  )
}

/** Shown when the session has ended. */
export function PortalEnded() {
  return (
    <PortalNotice title="This page has ended">
      It ends after a while without use. Reload the page that led here.
    </PortalNotice>
  )
}
