import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { isSignedOut, queryClient, sessionQuery } from './api/query-client.ts'
import type { Session } from './api/scope.tsx'
import { Fault, NotFound } from './frame/fault.tsx'

/** Returns the session, or leads to the form to sign in and back here afterwards. */
async function sessionOrSignIn(href: string): Promise<Session> {
  try {
    return await queryClient.ensureQueryData(sessionQuery)
  } catch (error) {
    if (!isSignedOut(error)) throw error
    throw redirect({ to: '/sign-in', search: href === '/' ? {} : { next: href } })
  }
}

const root = createRootRoute({ notFoundComponent: NotFound })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: async () => {
    const { accounts } = await sessionOrSignIn('/')
    const [first] = accounts
    if (first !== undefined) {
      throw redirect({ to: '/$account/$mode/overview', params: { account: first.id, mode: 'live' } })
    }
  },
  component: lazyRouteComponent(() => import('./frame/no-account.tsx'), 'NoAccount'),
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>) => ({ next: search.next }),
  component: lazyRouteComponent(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
})

const forgotPassword = createRoute({
  getParentRoute: () => root,
  path: '/forgot-password',
  component: lazyRouteComponent(() => import('./screens/sign-in/forgot-password.tsx'), 'ForgotPassword'),
})

const accept = createRoute({
  getParentRoute: () => root,
  path: '/accept',
  component: lazyRouteComponent(() => import('./screens/sign-in/accept-link.tsx'), 'AcceptLink'),
})

const provider = createRoute({
  getParentRoute: () => root,
  path: '/provider',
  component: lazyRouteComponent(() => import('./screens/sign-in/provider-answer.tsx'), 'ProviderAnswer'),
})

/** The address of captured email that the service tells people of. */
const captured = createRoute({
  getParentRoute: () => root,
  path: '/captured',
  beforeLoad: async () => {
    const { accounts } = await sessionOrSignIn('/captured')
    const [first] = accounts
    throw redirect(
      first === undefined
        ? { to: '/', replace: true }
        : { to: '/$account/$mode/captured', params: { account: first.id, mode: 'live' }, replace: true },
    )
  },
})

const account = createRoute({
  getParentRoute: () => root,
  path: '/$account/$mode',
  beforeLoad: ({ location }) => sessionOrSignIn(location.href),
  component: lazyRouteComponent(() => import('./frame/shell.tsx'), 'Shell'),
})

const start = createRoute({
  getParentRoute: () => account,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/$account/$mode/overview', params, replace: true })
  },
})

type Loading = ReturnType<typeof lazyRouteComponent>

function screen(path: string, component: Loading) {
  return createRoute({ getParentRoute: () => account, path, component })
}

const screens = [
  screen(
    'overview',
    lazyRouteComponent(() => import('./screens/overview/overview.tsx'), 'Overview'),
  ),
  screen(
    'emails',
    lazyRouteComponent(() => import('./screens/emails/email-list.tsx'), 'EmailList'),
  ),
  screen(
    'emails/$id',
    lazyRouteComponent(() => import('./screens/emails/email-detail.tsx'), 'EmailDetail'),
  ),
  screen(
    'templates',
    lazyRouteComponent(() => import('./screens/templates/template-list.tsx'), 'TemplateList'),
  ),
  screen(
    'templates/$id',
    lazyRouteComponent(() => import('./screens/templates/template-editor.tsx'), 'TemplateEditor'),
  ),
  screen(
    'campaigns',
    lazyRouteComponent(() => import('./screens/campaigns/campaign-list.tsx'), 'CampaignList'),
  ),
  screen(
    'campaigns/new',
    lazyRouteComponent(() => import('./screens/campaigns/campaign-editor.tsx'), 'CreateCampaign'),
  ),
  screen(
    'campaigns/$id',
    lazyRouteComponent(() => import('./screens/campaigns/campaign-detail.tsx'), 'CampaignDetail'),
  ),
  screen(
    'campaigns/$id/edit',
    lazyRouteComponent(() => import('./screens/campaigns/campaign-editor.tsx'), 'EditCampaign'),
  ),
  screen(
    'captured',
    lazyRouteComponent(() => import('./screens/emails/captured-list.tsx'), 'CapturedList'),
  ),
  screen(
    'captured/$id',
    lazyRouteComponent(() => import('./screens/emails/captured-detail.tsx'), 'CapturedDetail'),
  ),
  screen(
    'inbound-messages',
    lazyRouteComponent(() => import('./screens/emails/inbound-list.tsx'), 'InboundList'),
  ),
  screen(
    'inbound-messages/$id',
    lazyRouteComponent(() => import('./screens/emails/inbound-detail.tsx'), 'InboundDetail'),
  ),
  screen(
    'webhooks',
    lazyRouteComponent(() => import('./screens/webhooks/webhook-list.tsx'), 'WebhookList'),
  ),
  screen(
    'webhooks/$id',
    lazyRouteComponent(() => import('./screens/webhooks/webhook-detail.tsx'), 'WebhookDetail'),
  ),
  screen(
    'webhooks/$id/receiver',
    lazyRouteComponent(() => import('./screens/webhooks/webhook-receiver.tsx'), 'WebhookReceiver'),
  ),
  screen(
    'webhooks/$id/deliveries/$deliveryId',
    lazyRouteComponent(() => import('./screens/webhooks/delivery-detail.tsx'), 'DeliveryDetail'),
  ),
  screen(
    'event-types',
    lazyRouteComponent(() => import('./screens/webhooks/event-types.tsx'), 'EventTypes'),
  ),
  screen(
    'event-types/$id',
    lazyRouteComponent(() => import('./screens/webhooks/event-type-detail.tsx'), 'EventTypeDetail'),
  ),
  screen(
    'domains',
    lazyRouteComponent(() => import('./screens/domains/domain-list.tsx'), 'DomainList'),
  ),
  screen(
    'domains/$id',
    lazyRouteComponent(() => import('./screens/domains/domain-detail.tsx'), 'DomainDetail'),
  ),
  screen(
    'domains/$id/deliverability',
    lazyRouteComponent(() => import('./screens/domains/deliverability.tsx'), 'DomainDeliverability'),
  ),
  screen(
    'events',
    lazyRouteComponent(() => import('./screens/events/event-list.tsx'), 'EventList'),
  ),
  screen(
    'events/$id',
    lazyRouteComponent(() => import('./screens/events/event-detail.tsx'), 'EventDetail'),
  ),
  screen(
    'logs',
    lazyRouteComponent(() => import('./screens/logs/request-list.tsx'), 'RequestList'),
  ),
  screen(
    'logs/$id',
    lazyRouteComponent(() => import('./screens/logs/request-detail.tsx'), 'RequestDetail'),
  ),
  screen(
    'subscribers',
    lazyRouteComponent(() => import('./screens/people/subscriber-list.tsx'), 'SubscriberList'),
  ),
  screen(
    'subscribers/$id',
    lazyRouteComponent(() => import('./screens/people/subscriber-detail.tsx'), 'SubscriberDetail'),
  ),
  screen(
    'audiences',
    lazyRouteComponent(() => import('./screens/people/audience-list.tsx'), 'AudienceList'),
  ),
  screen(
    'audiences/$id',
    lazyRouteComponent(() => import('./screens/people/audience-detail.tsx'), 'AudienceDetail'),
  ),
  screen(
    'suppressions',
    lazyRouteComponent(() => import('./screens/people/suppression-list.tsx'), 'SuppressionList'),
  ),
  screen(
    'imports',
    lazyRouteComponent(() => import('./screens/imports/import-list.tsx'), 'ImportList'),
  ),
  screen(
    'imports/new',
    lazyRouteComponent(() => import('./screens/imports/new-import.tsx'), 'NewImport'),
  ),
  screen(
    'imports/$id',
    lazyRouteComponent(() => import('./screens/imports/import-detail.tsx'), 'ImportDetail'),
  ),
  screen(
    'segments',
    lazyRouteComponent(() => import('./screens/segments/segment-list.tsx'), 'SegmentList'),
  ),
  screen(
    'segments/new',
    lazyRouteComponent(() => import('./screens/segments/new-segment.tsx'), 'NewSegment'),
  ),
  screen(
    'segments/$id',
    lazyRouteComponent(() => import('./screens/segments/segment-detail.tsx'), 'SegmentDetail'),
  ),
  screen(
    'topics',
    lazyRouteComponent(() => import('./screens/topics/topic-list.tsx'), 'TopicList'),
  ),
  screen(
    'properties',
    lazyRouteComponent(() => import('./screens/properties/property-list.tsx'), 'PropertyList'),
  ),
  screen(
    'settings/api-keys',
    lazyRouteComponent(() => import('./screens/settings/api-keys.tsx'), 'ApiKeys'),
  ),
  screen(
    'settings/members',
    lazyRouteComponent(() => import('./screens/settings/members.tsx'), 'Members'),
  ),
  screen(
    'settings/sessions',
    lazyRouteComponent(() => import('./screens/settings/sessions.tsx'), 'Sessions'),
  ),
  screen(
    'settings/security',
    lazyRouteComponent(() => import('./screens/settings/security.tsx'), 'Security'),
  ),
  screen(
    'settings/brand',
    lazyRouteComponent(() => import('./screens/settings/brand.tsx'), 'BrandScreen'),
  ),
  screen(
    'settings/portal-sessions',
    lazyRouteComponent(() => import('./screens/settings/portal-sessions.tsx'), 'PortalSessions'),
  ),
  screen(
    'settings/usage',
    lazyRouteComponent(() => import('./screens/settings/usage.tsx'), 'Usage'),
  ),
  screen(
    'settings/audit-log',
    lazyRouteComponent(() => import('./screens/settings/audit-log.tsx'), 'AuditLog'),
  ),
]

const operator = createRoute({
  getParentRoute: () => root,
  path: '/operator',
  beforeLoad: ({ location }) => sessionOrSignIn(location.href),
  component: lazyRouteComponent(() => import('./frame/operator-shell.tsx'), 'OperatorShell'),
})

const operatorStart = createRoute({
  getParentRoute: () => operator,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/operator/accounts', replace: true })
  },
})

function operatorScreen(path: string, component: Loading) {
  return createRoute({ getParentRoute: () => operator, path, component })
}

const operatorScreens = [
  operatorScreen(
    'accounts',
    lazyRouteComponent(() => import('./screens/operator/account-list.tsx'), 'AccountList'),
  ),
  operatorScreen(
    'accounts/$id',
    lazyRouteComponent(() => import('./screens/operator/account-detail.tsx'), 'AccountDetail'),
  ),
  operatorScreen(
    'service',
    lazyRouteComponent(() => import('./screens/operator/service.tsx'), 'Service'),
  ),
  operatorScreen(
    'storage',
    lazyRouteComponent(() => import('./screens/operator/storage.tsx'), 'Storage'),
  ),
]

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    signIn,
    forgotPassword,
    accept,
    provider,
    operator.addChildren([operatorStart, ...operatorScreens]),
    captured,
    account.addChildren([start, ...screens]),
  ]),
  basepath: '/app',
  defaultErrorComponent: Fault,
  defaultNotFoundComponent: NotFound,
  defaultPreload: 'intent',
  scrollRestoration: true,
})
