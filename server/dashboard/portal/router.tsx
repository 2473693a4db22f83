import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { PortalFrame, PortalNotice } from './frame.tsx'

const NotFound = () => <PortalNotice title="Nothing is here">The address is mistyped.</PortalNotice>
const Fault = () => <PortalNotice title="This page cannot be shown">Load it again.</PortalNotice>

/** Returns the router of the portal: some of the screens of the dashboard, at the same paths below `basepath`. */
export function createPortalRouter(basepath: string) {
  const root = createRootRoute({ component: PortalFrame, notFoundComponent: NotFound })
  const screen = (path: string, component: ReturnType<typeof lazyRouteComponent>) =>
    createRoute({ getParentRoute: () => root, path, component })
  const start = createRoute({
    getParentRoute: () => root,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/webhooks', replace: true })
    },
  })
  const screens = [
    screen(
      'webhooks',
      lazyRouteComponent(() => import('../screens/webhooks/webhook-list.tsx'), 'WebhookList'),
    ),
    screen(
      'webhooks/$id',
      lazyRouteComponent(() => import('../screens/webhooks/webhook-detail.tsx'), 'WebhookDetail'),
    ),
    screen(
      'webhooks/$id/receiver',
      lazyRouteComponent(() => import('../screens/webhooks/webhook-receiver.tsx'), 'WebhookReceiver'),
    ),
    screen(
      'webhooks/$id/deliveries/$deliveryId',
      lazyRouteComponent(() => import('../screens/webhooks/delivery-detail.tsx'), 'DeliveryDetail'),
    ),
    screen(
      'event-types',
      lazyRouteComponent(() => import('../screens/webhooks/event-types.tsx'), 'EventTypes'),
    ),
    screen(
      'event-types/$id',
      lazyRouteComponent(() => import('../screens/webhooks/event-type-detail.tsx'), 'EventTypeDetail'),
    ),
  ]
  return createRouter({
    routeTree: root.addChildren([start, ...screens]),
    basepath,
    defaultErrorComponent: Fault,
    defaultNotFoundComponent: NotFound,
    defaultPreload: 'intent',
  })
}
