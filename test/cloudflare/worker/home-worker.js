// A Worker whose object is a home of sessions, as the suite of homes has it.

import { DurableObject } from 'cloudflare:workers';
import { TextSession } from 'offstage';
import { hostSession } from 'offstage/cloudflare';
import { homeConformanceAgents } from 'suite-of-homes';

export class Chat extends DurableObject {
  #host;

  constructor(ctx, env) {
    super(ctx, env);
    const agents = homeConformanceAgents((what) =>
      fetch(env.TELL_URL, { method: 'POST', body: what }).then((response) => response.text()),
    );
    this.#host = hostSession(ctx, {
      idleMs: 50,
      open: (sessionId, runtime) => new TextSession({ sessionId, runtime, ...agents }),
      authorize: ({ token, sessionId }) =>
        token !== null && sessionId !== null ? { sessionId, user: token, role: 'user' } : null,
      limits: { clientsPerUser: 50 },
    });
  }

  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/offstage') return this.#host.fetch(request);
    return new Response(String(this.#host.isAwake));
  }

  webSocketMessage(socket, message) {
    // Planted: an object that was evicted does not hear the tabs of before.
    if (this.env.FAULT === 'forgets its tabs' && !this.#host.isAwake) return undefined;
    return this.#host.webSocketMessage(socket, message);
  }

  webSocketClose(socket) {
    this.#host.webSocketClose(socket);
  }

  alarm() {
    // Planted: nothing that is due wakes it.
    return this.env.FAULT === 'never looks' ? undefined : this.#host.alarm();
  }
}

export default {
  fetch(request, env) {
    const session = new URL(request.url).searchParams.get('session') ?? 'none';
    return env.CHAT.getByName(session).fetch(request);
  },
};
