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
      receive(session, message) {
        const { say, answer, optionId } = JSON.parse(message);
        return say === undefined ? session.answer(answer, { optionId }) : session.sendText(say);
      },
    });
  }

  async fetch(request) {
    if (request.headers.has('upgrade')) return this.#host.fetch(request);
    if (request.method === 'GET' && new URL(request.url).searchParams.has('look'))
      return Response.json({
        bornAt: this.#bornAt,
        isAwake: this.#host.isAwake,
        errors: this.#errors,
        alarm: await this.ctx.storage.getAlarm(),
        entries: this.ctx.storage.sql.exec('select count(*) as n from entries').one().n,
        plain: (await this.#host.fetch(request)).status,
      });
    const { say, answer, optionId } = request.method === 'POST' ? await request.json() : {};
    return Response.json(
      await this.#host.use(async (session) => {
        if (say) await session.sendText(say);
        if (answer) return session.answer(answer, { optionId });
        const { questions, transcript } = session.store.getSnapshot().context;
        return {
          open: questions.filter(({ state }) => state === 'open').map(({ requestId }) => requestId),
          said: transcript.map(({ text }) => text),
        };
      }),
    );
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
    return env.CHAT.getByName(new URL(request.url).pathname.slice(1)).fetch(request);
  },
};
