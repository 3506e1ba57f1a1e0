// Signed webhooks as an event source of a service: `offstage/webhook`.

export { type WebhookDelivery, type WebhookRefusal, type WebhookSourceOptions } from './options.ts';
export type { Rate } from './options.ts';
export type { HmacHeaders, SignatureScheme } from './signatures.ts';
export { webhookSource, type WebhookSource } from './webhook-source.ts';
