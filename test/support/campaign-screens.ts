import { type Made, none, type Screen } from './screen.ts'

/** Returns the screens of campaigns and templates. */
export function campaignScreens(made: Made): Screen[] {
  return [
    {
      path: 'campaigns',
      heading: 'Campaigns',
      permission: 'campaigns:read',
      buttons: [['Create campaign', 'campaigns:write']],
      calls: [
        ['GET /v1/campaigns', 'campaigns:read'],
        ['POST /v1/campaigns', 'campaigns:write'],
      ],
    },
    {
      path: `campaigns/${made.campaign}`,
      heading: 'Spring news',
      area: 'Campaigns',
      permission: 'campaigns:read',
      buttons: [
        ['Send it', 'campaigns:send'],
        ['Edit', 'campaigns:write'],
        ['More', 'campaigns:write'],
      ],
      calls: [
        [`GET /v1/campaigns/${none}`, 'campaigns:read'],
        [`GET /v1/campaigns/${none}/statistics`, 'campaigns:read'],
        [`POST /v1/campaigns/${none}/render`, 'campaigns:read'],
        [`GET /v1/campaigns/${none}/recipients`, 'campaigns:read'],
        [`GET /v1/campaigns/${none}/recipients/export`, 'contacts:read'],
        [`PATCH /v1/campaigns/${none}`, 'campaigns:write'],
        [`POST /v1/campaigns/${none}/send`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/test`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/winner`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/pause`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/resume`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/cancel`, 'campaigns:send'],
        [`POST /v1/campaigns/${none}/duplicate`, 'campaigns:write'],
        [`DELETE /v1/campaigns/${none}`, 'campaigns:write'],
      ],
    },
    {
      path: `campaigns/${made.campaign}/edit`,
      heading: 'Edit the campaign',
      area: 'Campaigns',
      permission: 'campaigns:read',
      buttons: [['Save', 'campaigns:write']],
      calls: [[`PATCH /v1/campaigns/${none}`, 'campaigns:write']],
    },
    {
      path: 'campaigns/new',
      heading: 'Create a campaign',
      area: 'Campaigns',
      permission: 'campaigns:write',
      buttons: [['Create draft', 'campaigns:write']],
      calls: [],
    },
    {
      path: 'templates',
      heading: 'Templates',
      permission: 'templates:read',
      buttons: [
        ['Create template', 'templates:write'],
        ['Actions for Welcome', 'templates:write'],
      ],
      calls: [
        ['GET /v1/templates', 'templates:read'],
        ['POST /v1/templates', 'templates:write'],
        [`DELETE /v1/templates/${none}`, 'templates:write'],
      ],
    },
    {
      path: `templates/${made.template}`,
      heading: 'Welcome',
      area: 'Templates',
      permission: 'templates:read',
      buttons: [
        ['Publish', 'templates:write'],
        ['More', 'templates:write'],
        ['Add a variable', 'templates:write'],
      ],
      calls: [
        [`GET /v1/templates/${none}`, 'templates:read'],
        [`PATCH /v1/templates/${none}`, 'templates:write'],
        [`POST /v1/templates/${none}/publish`, 'templates:write'],
        [`POST /v1/templates/${none}/render`, 'templates:read'],
        [`GET /v1/templates/${none}/versions`, 'templates:read'],
      ],
    },
  ]
}
