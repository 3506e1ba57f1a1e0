// A Worker with an object that hosts a session: its model is the server of the test.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { DurableObject } from 'cloudflare:workers';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { hostSession } from 'offstage/cloudflare';
import { z } from 'zod';

const bookRide = defineTool({
  name: 'book_ride',
  description: 'Books a ride',
  parameters: z.object({ to: z.string() }),
  execution: 'background',
  pendingMessage: 'On it.',
});

export class Chat extends DurableObject {
  #bornAt = Date.now();
  #errors = [];
  #host;

  constructor(ctx, env) {
    super(ctx, env);
    const model = createOpenAICompatible({ name: 'fake', baseURL: env.MODEL_URL })('fake');
    this.#host = hostSession(ctx, {
      idleMs: 100,
      onError: (error, where) => this.#errors.push(`${where}: ${String(error)}`),
      open: (sessionId, runtime) =>
        new TextSession({
          sessionId,
          runtime,
          model,
          reminders: true,
          timeZone: 'Europe/Lisbon',
          agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
          subagentConfigs: {
            book_ride: defineSubagent({
              name: 'rider',
              instructions: 'You book rides.',
              interactive: true,
              inputTimeout: Number(env.INPUT_TIMEOUT_MS),
              tools: {},
            }),
          },
        }),
      // Ann and Bob are users, Eve watches; Mallory is known, and belongs elsewhere.
      authorize: ({ token, sessionId }) => {
        if (token === 'mallory') return { sessionId: 'elsewhere', user: token, role: 'user' };
        if (!['ann', 'bob', 'eve'].includes(token) || sessionId === null) return null;
        return { sessionId, user: token, role: token === 'eve' ? 'watcher' : 'user' };
      },
      limits: { aliveMs: 100, maxMessageBytes: 2_000 },
    });
  }

  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/offstage') return this.#host.fetch(request);
    const { sql } = this.ctx.storage;
    if (pathname === '/forget') await this.#host.forget();
    if (pathname === '/dump' || pathname === '/forget') {
      const tables = sql.exec("select name from sqlite_master where type = 'table'").toArray();
      const rows = tables
        .filter(({ name }) => !name.startsWith('_cf'))
        .flatMap(({ name }) => sql.exec(`select * from ${name}`).toArray());
      return Response.json({ rows, alarm: await this.ctx.storage.getAlarm() });
    }
    return Response.json({
      bornAt: this.#bornAt,
      isAwake: this.#host.isAwake,
      errors: this.#errors,
      alarm: await this.ctx.storage.getAlarm(),
      entries: sql.exec('select count(*) as n from entries').one().n,
    });
  }

  webSocketClose(socket) {
    this.#host.webSocketClose(socket);
  }

  webSocketMessage(socket, message) {
    return this.#host.webSocketMessage(socket, message);
  }

  alarm() {
    return this.#host.alarm();
  }
}

export default {
  fetch(request, env) {
    return env.CHAT.getByName(new URL(request.url).searchParams.get('session') ?? 'none').fetch(
      request,
    );
  },
};
