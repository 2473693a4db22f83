/**
 * How emails wait and leave: `single` for what is sent singly, `bulk` for campaigns and for what many people get at
 * once. What is sent singly goes first everywhere: docs/architecture/email-lanes.md.
 */
export type Lane = 'single' | 'bulk'

export const lanes: readonly Lane[] = ['single', 'bulk']
