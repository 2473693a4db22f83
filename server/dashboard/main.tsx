import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './styles/frame.css'
import './styles/data.css'
import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { watchAttendance } from './api/attendance.ts'
import { queryClient } from './api/query-client.ts'
import { router } from './router.tsx'
import { styleNonce } from './style-nonce.ts'
import { theme } from './theme.ts'

setNonce(styleNonce())
watchAttendance(window)

const root = document.getElementById('root')
if (root === null) throw new Error('the page has no element with the id root')
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={styleNonce}>
      <QueryClientProvider client={queryClient}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
