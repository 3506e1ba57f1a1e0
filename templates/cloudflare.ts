// The Worker: each chat is a Durable Object. The page is in the folder `web`, which Cloudflare serves (wrangler.jsonc).

import { createHash, timingSafeEqual } from 'node:crypto';
import { TextSession } from 'offstage';
import { hostSession, type DurableObjectContext, type DurableSocket } from 'offstage/cloudflare';
import { lead, subagentConfigs } from './agents.ts';
import { isScripted, model } from './model.ts';

/** The object keeps the session in its SQLite, and its alarm wakes it. An open page does not keep it in memory. */
export class Chat {
  readonly #host;

  constructor(ctx: DurableObjectContext) {
    this.#host = hostSession(ctx, {
      open: (sessionId, runtime) =>
        new TextSession({ sessionId, runtime, model, agents: [lead], subagentConfigs }),
      // If your application has users, authenticate the user here, and check that this chat belongs to them.
      authorize: ({ token, sessionId }) =>
        sessionId !== null && mayTalk(token) ? { sessionId, user: 'user', role: 'user' } : null,
    });
  }

  fetch(request: Request): Promise<Response> {
    return this.#host.fetch(request);
  }

  webSocketMessage(socket: DurableSocket, message: string | ArrayBuffer): Promise<void> {
    return this.#host.webSocketMessage(socket, message);
  }

  webSocketClose(socket: DurableSocket): void {
    this.#host.webSocketClose(socket);
  }

  alarm(): Promise<void> {
    return this.#host.alarm();
  }
}

/** Anyone may talk to the script. A model costs money, so it answers only users who have the secret ACCESS_TOKEN. */
function mayTalk(token: string | null): boolean {
  const { ACCESS_TOKEN } = process.env;
  if (isScripted) return true;
  if (!ACCESS_TOKEN || token === null) return false;
  const digest = (text: string): Uint8Array => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(token), digest(ACCESS_TOKEN));
}

interface Env {
  readonly CHAT: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

export default {
  fetch(request: Request, { CHAT }: Env): Response | Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const chat = searchParams.get('session');
    if (pathname !== '/offstage' || !chat) return new Response('Nothing is here', { status: 404 });
    return CHAT.getByName(chat).fetch(request);
  },
};
