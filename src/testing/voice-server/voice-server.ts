// The fake voice server: one responder for connections with all three protocols, over in-memory or real sockets. See
// `index.ts` for the limits of its tests.
//
// Owns: the connections, admission, and the states that a later connection can resume.
// Does not: define the events of a protocol (its engine does) or the model's answers (`respond` and scripts do).

import { z } from 'zod';
import { aFunction, anObject, check, type ChecksOf } from '../../values/checks.ts';
import type { WebSocketFactory } from '../../adapters/socket/web-socket.ts';
import { admit, type Admission, type Headers } from './engine/admission.ts';
import type {
  FakeVoiceModel,
  VoiceServer,
  VoiceServerOptions,
  VoiceWire,
} from './engine/control.ts';
import type { EnginePorts, VoiceEngine } from './engine/engine.ts';
import { createEventQueue } from './engine/event-queue.ts';
import { fakeConnection, type FakeConnection } from './engine/fake-connection.ts';
import { geminiEngine, type GeminiMemory } from './gemini/gemini-engine.ts';
import { selfSignedCertificate } from './hosts/certificate.ts';
import { startListeningHost, type ListeningHost, type Upgrade } from './hosts/listening-host.ts';
import { createSocketPair } from './hosts/socket-pair.ts';
import { liveEngine, type LiveMemory } from './live/live-engine.ts';
import type { FrameTaker, Link } from './engine/outlet.ts';
import { realtimeEngine } from './realtime/realtime-engine.ts';
import { answerRequest } from './engine/rest.ts';
import { createResumeStore } from './engine/resume-store.ts';
import { tokenIssuer } from './engine/token-issuer.ts';

/** A connection that has not been returned yet. Queues need a type, and all arrivals have the same one. */
interface Arrival {
  readonly type: 'connection';
  readonly model: FakeVoiceModel;
}

const aboveZero = z.custom<number>(
  (value) => typeof value === 'number' && value > 0,
  'expected a number above 0',
);
const optionsSchema = z.strictObject({
  environment: anObject('an environment'),
  respond: aFunction.optional(),
  apiKey: z.string().min(1).optional(),
  speed: aboveZero.optional(),
  maxConnectionMs: aboveZero.optional(),
  voiceActivity: z.boolean().optional(),
  keepFrames: z.boolean().optional(),
  onConnection: aFunction.optional(),
} satisfies ChecksOf<VoiceServerOptions>);

/**
 * Creates a fake of the OpenAI Realtime, OpenAI Live and Gemini Live servers, in this process and without keys.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function createVoiceServer(options: VoiceServerOptions): VoiceServer {
  check('createVoiceServer', optionsSchema, options);
  const { environment, apiKey = null } = options;
  const connections: FakeConnection[] = [];
  const arrivals = createEventQueue<Arrival>();
  const hosts: ListeningHost[] = [];
  const tokens = tokenIssuer(environment);
  const handles = createResumeStore<GeminiMemory>();
  const sessions = createResumeStore<LiveMemory>();
  const refusals: { readonly status: number }[] = [];
  let ignored = 0;

  const engines: Record<VoiceWire, (ports: EnginePorts) => VoiceEngine> = {
    'openai-realtime': (ports) => realtimeEngine(ports),
    'openai-live': (ports) => liveEngine(ports, sessions),
    'gemini-live': (ports) => geminiEngine(ports, handles),
  };

  const connect = (
    { wire, preset }: Extract<Admission, { type: 'welcome' }>,
    url: URL,
    headers: Headers,
    link: Link,
  ): FakeConnection => {
    const connection = fakeConnection({
      wire,
      number: connections.length + 1,
      url,
      headers: plainHeaders(headers),
      preset,
      options,
      link,
      createEngine: engines[wire],
      forget: () => (wire === 'gemini-live' ? handles : sessions).forget(),
    });
    connections.push(connection);
    options.onConnection?.(connection);
    arrivals.push({ type: 'connection', model: connection });
    return connection;
  };

  /** @returns the receiver of frames and the callback for the opening of the socket */
  const receive = (
    admission: Exclude<Admission, { type: 'refused' }>,
    url: URL,
    headers: Headers,
    link: Link,
  ): { readonly taker: FrameTaker; readonly opened: () => void } => {
    if (admission.type === 'welcome') {
      const connection = connect(admission, url, headers, link);
      return { taker: connection, opened: () => connection.open() };
    }
    const { event, code, reason } = admission;
    const opened = (): void => {
      const id = environment.ids.next('event');
      if (event !== null) link.send(JSON.stringify({ event_id: id, ...event }));
      link.close(code, reason);
    };
    return { taker: { receive: () => {}, lost: () => {} }, opened };
  };

  const admission = (url: URL, headers: Headers): Admission | null => {
    if (ignored > 0) {
      ignored -= 1;
      return null;
    }
    const refusal = refusals.shift();
    if (refusal !== undefined) {
      return { type: 'refused', status: refusal.status, message: 'Refused on purpose' };
    }
    return admit(url, headers, apiKey, tokens);
  };

  const upgrade = (url: URL, headers: Headers): Upgrade => {
    const admitted = admission(url, headers);
    if (admitted === null) return { type: 'ignored' };
    if (admitted.type === 'refused') return admitted;
    return {
      type: 'accepted',
      open: (link) => {
        const { taker, opened } = receive(admitted, url, headers, link);
        opened();
        return taker;
      },
    };
  };

  const webSocket: WebSocketFactory = (address, { headers }) => {
    const pair = createSocketPair();
    const url = new URL(address);
    url.pathname = url.pathname.replace(/^\/+/, '/');
    const lowercase = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const admitted = admission(url, lowercase);
    if (admitted === null) return pair.client;
    if (admitted.type === 'refused') pair.refuse(admitted.status, admitted.message);
    else {
      const { taker, opened } = receive(admitted, url, lowercase, pair.link);
      pair.accept(taker, opened);
    }
    return pair.client;
  };

  return {
    webSocket,
    connections,
    async listen({ port = 0, tls = false } = {}) {
      const own = tls === true ? selfSignedCertificate(environment.clock.now()) : null;
      const host = await startListeningHost({
        environment,
        port,
        certificate: typeof tls === 'object' ? tls : own,
        isBinary: (url) => url.pathname.includes('BidiGenerateContent'),
        upgrade,
        answer: (request) => answerRequest(request, { environment, tokens, apiKey }),
      });
      hosts.push(host);
      return host.address;
    },
    nextConnection: async () => (await arrivals.next('connection')).model,
    refuseConnections({ status, times = 1 }) {
      for (let count = 0; count < times; count += 1) refusals.push({ status });
    },
    ignoreConnections(times = 1) {
      ignored += times;
    },
    async close() {
      for (const connection of connections) connection.faults.drop();
      await Promise.all(hosts.splice(0).map((host) => host.close()));
    },
  };
}

function plainHeaders(headers: Headers): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  );
}
