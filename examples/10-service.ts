// Usage: npm run example examples/10-service.ts
//
// A service subagent: as long as the session exists, it handles outside events and reports the important ones to the
// user. In this example, a shop sends signed webhooks over real HTTP, and a warehouse is polled. A normal event waits
// for a pause; an urgent one interrupts. The model is scripted, so the example runs without a key.

import { pollingSource } from 'offstage/services';
import { createHmac } from 'node:crypto';
import { webhookSource } from 'offstage/webhook';
import { defineService, TextSession } from 'offstage';
import { readNotes, readTask, scriptedModel } from 'offstage/testing';

const secret = 'shared-with-the-shop-and-nobody-else';

const shop = webhookSource({
  name: 'order-webhook',
  path: '/webhooks/orders',
  secret,
  listen: { port: 0 },
  toEvent: ({ body }) => {
    const data = body as { id: number; status: string };
    return {
      source: 'webhook',
      type: 'order.status_changed',
      data,
      priority: data.status === 'lost' ? 'urgent' : 'normal',
    };
  },
});

/** The warehouse's answers, one list per poll. */
const stock = [[{ sku: 'desk', left: 2 }], [{ sku: 'desk', left: 2 }], [{ sku: 'lamp', left: 0 }]];

const warehouse = pollingSource<number>({
  name: 'warehouse',
  intervalMs: 200,
  cursor: 0,
  poll: async (_signal, page = 0) => ({
    events: (stock[page] ?? []).map((data) => ({ source: 'warehouse', type: 'stock.low', data })),
    cursor: page + 1,
  }),
  // The desk is reported twice but handled once.
  keyOf: ({ data }) => JSON.stringify(data),
});

const orderMonitor = defineService({
  agent: {
    name: 'order_monitor',
    instructions: 'Monitor orders and stock, and notify the user of important updates.',
    maxSteps: 3,
  },
  eventSources: [shop, warehouse],
  shouldInvoke: ({ type }) => type !== 'order.viewed',
});

const model = scriptedModel({
  scripts: [
    {
      when: 'Monitor orders',
      script: ({ prompt }) => {
        const { task = '' } = readTask(prompt) ?? {};
        const { data } = JSON.parse(/\n(\{.*\})\n/.exec(task)?.[1] ?? '{}');
        if (data.status === 'lost') return { text: `Order ${data.id} was lost!` };
        if (data.status === 'shipped') return { text: `Order ${data.id} is on its way.` };
        if (data.left === 0) return { text: `There is no ${data.sku} left.` };
        return { text: '{"notify": false}' };
      },
    },
  ],
  otherwise: ({ user }) => ({ text: `News: ${readNotes(user)[0]?.text ?? user}` }),
});

const session = new TextSession({
  model,
  agents: [{ name: 'lead', instructions: 'You talk to the user.' }],
  services: [orderMonitor],
});
session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
});
const isUp = new Promise<void>((resolve) => {
  session.events.subscribe((event) => {
    if (event.type !== 'service.changed') return;
    if (event.service.sources.every(({ state }) => state === 'running')) resolve();
  });
});
const areTold = new Promise<void>((resolve) => {
  let told = 0;
  session.notifications.subscribe(({ state }) => {
    if (state === 'delivered' && (told += 1) === 3) resolve();
  });
});
await session.start();
await isUp;

/** Stands in for the shop: signs the id, the time and the body. */
async function order(id: string, status: string, key = secret): Promise<void> {
  const body = JSON.stringify({ id: 7, status });
  const at = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  const response = await fetch(shop.url ?? '', {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': `v1,${signature}`,
    },
  });
  console.log(`shop: ${status} → ${response.status} ${(await response.text()).trim()}`);
}

await order('msg_1', 'shipped');
await order('msg_1', 'shipped');
await order('msg_2', 'lost', 'somebody else would like to be the shop');
await order('msg_3', 'lost');
await areTold;
const [service] = session.services.list();
console.log(`order_monitor: ${JSON.stringify(service?.counts)}`);
await session.close();
