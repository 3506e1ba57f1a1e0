// A client that can send any message, over in-memory sockets and in virtual time.

import { onTestFinished } from 'vitest';
import {
  createVoiceServer,
  type FakeVoiceModel,
  type VoiceServer,
  type VoiceServerOptions,
  type VoiceWire,
} from '../../../../src/testing/voice-server/index.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../../src/testing/index.ts';

/** An event of the server, loosely typed: tests read any of its fields. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = Record<string, any>;

const googleService = 'google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

const addresses: Record<VoiceWire, string> = {
  'openai-realtime': 'wss://api.test/v1/realtime?model=gpt-realtime-2.1',
  'openai-live': 'wss://api.test/v1/live/sessions',
  'gemini-live': `wss://google.test//ws/${googleService}?key=some-key`,
};

/** A client's first message on each wire. */
const firstFrames: Record<VoiceWire, Loose> = {
  'openai-realtime': {
    type: 'session.update',
    session: {
      type: 'realtime',
      instructions: 'Be brief.',
      tools: [{ type: 'function', name: 'book_ride', parameters: { type: 'object' } }],
      audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } },
    },
  },
  'openai-live': {
    type: 'session.start',
    session: { model: 'gpt-live-1', instructions: 'Be brief.' },
  },
  'gemini-live': {
    setup: {
      model: 'models/gemini-3.8-live',
      generationConfig: { responseModalities: ['AUDIO'] },
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      tools: [{ functionDeclarations: [{ name: 'book_ride', description: 'Books.' }] }],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      sessionResumption: {},
    },
  },
};

export interface RawClient {
  readonly events: Loose[];
  /** The code and the reason of the close, or null while the socket is open. */
  closed: { readonly code: number; readonly reason: string } | null;
  /** The status of an upgrade that was refused. */
  refused: number | null;
  readonly isOpen: () => boolean;
  send(frame: Loose | string): void;
  close(): void;
  /** The last event of this type (on Gemini's wire, the last event with this field). */
  last(type: string): Loose | undefined;
  /** The number of events of this type. */
  count(type: string): number;
}

export interface Stage {
  readonly environment: SimulatedEnvironment;
  readonly server: VoiceServer;
  /** Advances the virtual time. */
  pass(ms?: number): Promise<void>;
  dial(wire: VoiceWire, url?: string, headers?: Record<string, string>): RawClient;
  /** Connects and sends the configuration. */
  call(
    wire: VoiceWire,
    first?: Loose,
    url?: string,
  ): Promise<{ readonly client: RawClient; readonly model: FakeVoiceModel }>;
}

export function stage(options: Partial<VoiceServerOptions> = {}): Stage {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, ...options });
  onTestFinished(() => server.close());
  const dial: Stage['dial'] = (wire, url = addresses[wire], headers = bearer) => {
    const events: Loose[] = [];
    let isOpen = false;
    const socket = server.webSocket(url, { headers, maxPayload: 0, perMessageDeflate: false });
    const client: RawClient = {
      events,
      closed: null,
      refused: null,
      isOpen: () => isOpen,
      send: (frame) => {
        socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame), () => {});
      },
      close: () => socket.close(1000),
      last: (type) => events.findLast((event) => event['type'] === type || type in event),
      count: (type) => events.filter((event) => event['type'] === type || type in event).length,
    };
    socket.on('open', () => {
      isOpen = true;
    });
    socket.on('message', (data) => {
      const text = data.toString();
      try {
        events.push(JSON.parse(text) as Loose);
      } catch {
        events.push({ type: 'not JSON', text });
      }
    });
    socket.on('close', (code, reason) => {
      client.closed = { code, reason: reason.toString() };
    });
    socket.on('unexpected-response', (_, response) => {
      client.refused = response.statusCode ?? 0;
    });
    return client;
  };
  const pass = (ms = 0): Promise<void> => environment.advance(ms);
  return {
    environment,
    server,
    pass,
    dial,
    async call(wire, first = firstFrames[wire], url = addresses[wire]) {
      const client = dial(wire, url);
      const model = await server.nextConnection();
      client.send(first);
      await pass();
      return { client, model };
    },
  };
}

const bearer = { authorization: 'Bearer some-key' };

export function firstFrame(wire: VoiceWire): Loose {
  return structuredClone(firstFrames[wire]);
}
