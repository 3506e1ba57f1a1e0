// Signed webhooks as an event source of a service: `offstage/webhook`.

export { type WebhookRefusal, type WebhookSourceOptions } from './options.ts';
export { webhookSource, type WebhookSource } from './webhook-source.ts';
