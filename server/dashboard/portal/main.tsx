import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import '../styles/frame.css'
import '../styles/data.css'
import '../styles/portal.css'
import { type MantineColorSchemeManager, MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { setNonce } from 'get-nonce'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { watchAttendance } from '../api/attendance.ts'
import { styleNonce } from '../style-nonce.ts'
import { PortalApp } from './app.tsx'
import { PortalEnded, PortalNotice } from './frame.tsx'
import { type OpenedPortal, openPortal, sessionIdOf, takeCode } from './open.ts'
import { themeWith } from './theme.ts'

setNonce(styleNonce())
watchAttendance(window)

/** Keeps nothing: a frame of another site may have no storage, and the session says what it wants. */
const noStorage: MantineColorSchemeManager = {
  get: (defaultValue) => defaultValue,
  set: () => undefined,
  subscribe: () => undefined,
  unsubscribe: () => undefined,
  clear: () => undefined,
}

const root = document.getElementById('root')
if (root === null) throw new Error('the page has no element with the id root')
const page = createRoot(root)

function show(content: ReactNode, theme: OpenedPortal['access']['theme'] | null): void {
  const { accentColor = null, colorScheme = 'auto' } = theme ?? {}
  page.render(
    <StrictMode>
      <MantineProvider
        theme={themeWith(accentColor)}
        defaultColorScheme={colorScheme}
        colorSchemeManager={noStorage}
        getStyleNonce={styleNonce}
      >
        <Notifications position="bottom-right" />
        {content}
      </MantineProvider>
    </StrictMode>,
  )
}

try {
  const id = sessionIdOf(location)
  const opened = id === null ? null : await openPortal(id, takeCode(location))
  if (opened === null) show(<PortalEnded />, null)
  else show(<PortalApp {...opened} />, opened.access.theme)
} catch {
  show(
    <PortalNotice title="This page cannot be shown">
      The service cannot be reached. Reload the page that led here.
    </PortalNotice>,
    null,
  )
}
