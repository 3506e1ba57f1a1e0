// The entry `offstage/webhook`: signed webhooks as an event source of a service.

export { type WebhookRefusal, type WebhookSourceOptions } from './options.ts';
export { webhookSource, type WebhookSource } from './webhook-source.ts';
