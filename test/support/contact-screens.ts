import { none, type Screen } from './screen.ts'

/** Returns the screens of segments, topics, properties and imports. */
export function contactScreens(made: Record<'segment' | 'import', string>): Screen[] {
  return [
    {
      path: 'segments',
      heading: 'Segments',
      permission: 'segments:read',
      buttons: [],
      calls: [['GET /v1/segments', 'segments:read']],
    },
    {
      path: 'segments/new',
      heading: 'Create a segment',
      area: 'Segments',
      permission: 'segments:write',
      buttons: [['Create segment', 'segments:write']],
      calls: [['POST /v1/segments', 'segments:write']],
    },
    {
      path: `segments/${made.segment}`,
      heading: 'Pro readers',
      area: 'Segments',
      permission: 'segments:read',
      buttons: [
        ['Delete', 'segments:write'],
        ['Save', 'segments:write'],
        ['Add a condition', 'segments:write'],
        ['Remove the condition', 'segments:write'],
        ['Export', 'contacts:read'],
      ],
      calls: [
        [`GET /v1/segments/${none}`, 'segments:read'],
        ['POST /v1/segments/preview', 'contacts:read'],
        [`GET /v1/segments/${none}/contacts`, 'contacts:read'],
        [`GET /v1/segments/${none}/contacts/export`, 'contacts:read'],
        [`PATCH /v1/segments/${none}`, 'segments:write'],
        [`DELETE /v1/segments/${none}`, 'segments:write'],
      ],
    },
    {
      path: 'topics',
      heading: 'Topics',
      permission: 'topics:read',
      buttons: [
        ['Create topic', 'topics:write'],
        ['Actions for Product news', 'topics:write'],
      ],
      calls: [
        ['GET /v1/topics', 'topics:read'],
        ['POST /v1/topics', 'topics:write'],
        [`PATCH /v1/topics/${none}`, 'topics:write'],
        [`DELETE /v1/topics/${none}`, 'topics:write'],
      ],
    },
    {
      path: 'properties',
      heading: 'Properties',
      permission: 'contacts:read',
      buttons: [
        ['Declare property', 'contacts:write'],
        ['Actions for plan', 'contacts:write'],
      ],
      calls: [
        ['GET /v1/contact-properties', 'contacts:read'],
        ['POST /v1/contact-properties', 'contacts:write'],
        [`PATCH /v1/contact-properties/${none}`, 'contacts:write'],
        [`DELETE /v1/contact-properties/${none}`, 'contacts:write'],
      ],
    },
    {
      path: 'imports',
      heading: 'Imports',
      permission: 'contacts:read',
      buttons: [],
      calls: [['GET /v1/imports', 'contacts:read']],
    },
    {
      path: 'imports/new',
      heading: 'Import contacts',
      area: 'Imports',
      permission: 'contacts:write',
      buttons: [],
      calls: [['POST /v1/imports', 'contacts:write']],
    },
    {
      path: `imports/${made.import}`,
      heading: 'people.csv',
      area: 'Imports',
      permission: 'contacts:read',
      buttons: [['Download the failed rows', 'contacts:read']],
      calls: [
        [`GET /v1/imports/${none}`, 'contacts:read'],
        [`GET /v1/imports/${none}/failed-rows`, 'contacts:read'],
        [`POST /v1/imports/${none}/cancel`, 'contacts:write'],
      ],
    },
  ]
}
