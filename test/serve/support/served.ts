// A served session with real sockets on 127.0.0.1, and clients whose timers run only when a test advances them.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import {
  connect,
  type ClientRole,
  type ConnectOptions,
  type SessionClient,
} from '../../../src/client/index.ts';
import { TextSession, type QuestionView, type SessionState } from '../../../src/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { serve, type OffstageServer, type ServeOptions } from '../../../src/serve/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { agentsOf, castOf, configsOf, type TalkOptions } from '../../support/text-talk.ts';
import { rideConfig, rideScript } from '../../support/ride.ts';

/** A text session that books rides. Its subagent asks "Economy or Premium?". */
export function rideSession(
  options: TalkOptions & { readonly sessionId?: string } = {},
): TextSession {
  const talk: TalkOptions = {
    ...options,
    subagents: {
      book_ride: {
        script: rideScript,
        config: { tools: rideConfig.tools ?? {}, interactive: true },
      },
      ...options.subagents,
    },
  };
  const { sessionId, runtime, limits, budget } = options;
  return new TextSession({
    ...(limits && { limits }),
    ...(budget && { budget }),
    ...(sessionId !== undefined && { sessionId }),
    ...(runtime && { runtime }),
    model: castOf(talk),
    agents: agentsOf(talk),
    subagentConfigs: configsOf(talk),
  });
}

export interface Served {
  readonly web: OffstageServer;
  readonly http: Server;
  readonly url: string;
  readonly errors: { readonly error: unknown; readonly where: string }[];
  /** Connects a client whose back-off waits for `client.environment.advance`. */
  client(options?: Partial<ConnectOptions>): TestClient;
  /** Stops the server and starts another one on the same port. */
  stop(): Promise<void>;
}

export interface TestClient {
  readonly it: SessionClient;
  readonly environment: ReturnType<typeof simulatedEnvironment>;
  state(): SessionState;
  /** Resolves when `isWanted` accepts the state. */
  until(isWanted: (state: SessionState) => boolean): Promise<SessionState>;
  /** Shows the question that was put to the user, and resolves with the question once it is open. */
  question(): Promise<QuestionView>;
  /** Resolves when `isWanted` accepts the connection status. */
  status(
    isWanted: (status: ReturnType<SessionClient['status']['get']>) => boolean,
  ): Promise<ReturnType<SessionClient['status']['get']>>;
  /** Advances the client's timers until the connection is open again. */
  reconnected(): Promise<void>;
}

export const tokens: Readonly<Record<string, { user: string; role: ClientRole }>> = {
  ann: { user: 'ann', role: 'user' },
  bob: { user: 'bob', role: 'user' },
  eve: { user: 'eve', role: 'watcher' },
  root: { user: 'root', role: 'operator' },
};

export async function served(
  options: Partial<ServeOptions>,
  {
    port = 0,
    mount,
  }: {
    readonly port?: number;
    readonly mount?: (web: OffstageServer) => Server | Promise<Server>;
  } = {},
): Promise<Served> {
  const errors: { error: unknown; where: string }[] = [];
  const web = serve({
    authorize: ({ token }) => {
      const known = tokens[token ?? ''];
      return known ? { sessionId: 's1', ...known } : null;
    },
    onError: (error, where) => errors.push({ error, where }),
    environment: nodeEnvironment(),
    ...options,
  });
  const http = mount
    ? await mount(web)
    : createServer((request, response) => web.handle(request, response));
  http.on('upgrade', (request, socket, head) => {
    if (!web.upgrade(request, socket, head)) socket.destroy();
  });
  http.listen(port, '127.0.0.1');
  await once(http, 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/offstage`;
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopped ??= (async () => {
      await web.close();
      http.closeAllConnections();
      await new Promise<void>((resolve) => {
        http.close(() => resolve());
      });
    })();
    return stopped;
  };
  onTestFinished(stop);
  return {
    web,
    http,
    url,
    errors,
    client: (more) => testClient({ url, token: 'ann', ...more }),
    stop,
  };
}

/** A client with a unique client id whose timers do not run on their own. */
export function testClient(options: ConnectOptions): TestClient {
  const environment = Object.assign(simulatedEnvironment(), { ids: nodeEnvironment().ids });
  const it = connect({ environment, ...options });
  onTestFinished(() => it.close());
  const state = (): SessionState => it.store.getSnapshot().context;
  const until = <T>(
    read: () => T,
    watch: { subscribe(listener: () => void): { unsubscribe(): void } },
    isWanted: (value: T) => boolean,
  ): Promise<T> =>
    new Promise((resolve) => {
      if (isWanted(read())) return resolve(read());
      const subscription = watch.subscribe(() => {
        if (!isWanted(read())) return;
        subscription.unsubscribe();
        resolve(read());
      });
    });
  const status: TestClient['status'] = (isWanted) =>
    until(() => it.status.get(), it.status, isWanted);
  return {
    it,
    environment,
    state,
    until: (isWanted) => until(state, it.store, isWanted),
    status,
    async question() {
      const isOpen = ({ state: each }: QuestionView): boolean => each === 'open';
      const find = (now: SessionState): QuestionView | undefined =>
        now.questions.find((each) => each.state === 'presenting' || isOpen(each));
      const asked = find(await until(state, it.store, (now) => find(now) !== undefined));
      await it.questionShown(asked?.requestId ?? '');
      const now = await until(state, it.store, ({ questions }) => questions.some(isOpen));
      const open = now.questions.find(isOpen);
      if (!open) throw new Error('Expected an open question');
      return open;
    },
    async reconnected() {
      for (;;) {
        const { state: now } = await status(({ state: each }) => each !== 'connecting');
        if (now !== 'waiting') return;
        await environment.advance(20_000);
      }
    },
  };
}
