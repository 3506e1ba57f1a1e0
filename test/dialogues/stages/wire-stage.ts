// The demo's session on a vendor's wire, in simulated time. The server is a fake, and every utterance is transcribed
// exactly. So the recogniser causes none of the faults here.

import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../../../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import type { WebSocketFactory } from '../../../src/adapters/socket/web-socket.ts';
import type { Transport } from '../../../src/index.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { workingSound } from '../../../src/voice/audio/working-sound.ts';
import { Client, TICK_MS } from '../../../src/testing/conformance/client.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import {
  createVoiceServer,
  type VoiceResponder,
  type VoiceWire,
} from '../../../src/testing/voice-server/index.ts';
import type { DialogueStage, Sound } from '../record.ts';
import { demoParts } from './demo-parts.ts';
import type { StageParts } from './text-stage.ts';
import { wireResponder } from './wire-responder.ts';

const MS_PER_CHARACTER = 60;
const LEAST_SPEECH_MS = 500;
/** How long a server hears a voice before it reports the voice. */
const NOTICED_AFTER_MS = 200;

const transports: Readonly<Record<VoiceWire, (webSocket: WebSocketFactory) => Transport>> = {
  'openai-realtime': (webSocket) =>
    openaiRealtime({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
  'openai-live': (webSocket) => openaiLive({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
  'gemini-live': (webSocket) => geminiLive({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
};

export const voiceWires = Object.keys(transports) as readonly VoiceWire[];

export async function wireStage(
  wire: VoiceWire,
  parts: StageParts = demoParts,
  respond: VoiceResponder = wireResponder(),
): Promise<DialogueStage> {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, respond });
  const transport = transports[wire](server.webSocket);
  const session: VoiceSession = new VoiceSession({
    ...parts(environment, () => session),
    transport,
    thinkingSound: { loop: workingSound() },
    ...(transport.capabilities.speaksOutOfBand && { filler: {} }),
    environment,
  });
  const errors: string[] = [];
  const yielded: number[] = [];
  session.events.subscribe((event) => {
    if (event.type === 'error.reported') errors.push(`${event.code}: ${event.message}`);
    if (event.type === 'playout.clear') yielded.push(now());
  });
  const client = new Client(session, environment);
  const sounds: Sound[] = [];
  let playedMs = 0;
  let isSounding = false;
  const now = () => environment.clock.now();
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= TICK_MS) {
      await environment.advance(Math.min(TICK_MS, left));
      isSounding = client.playedMs > playedMs;
      playedMs = client.playedMs;
      const last = sounds.at(-1);
      if (isSounding && last && now() - last.to <= TICK_MS) last.to = now();
      else if (isSounding) sounds.push({ from: now() - TICK_MS, to: now() });
    }
  };
  const leave = session.attach();
  const started = session.start();
  for (let waited = 0; state().connection !== 'active' && waited < 5000; waited += TICK_MS)
    await pass(TICK_MS);
  await started;
  function state() {
    return session.store.getSnapshot().context;
  }
  return {
    name: wire,
    get state() {
      return state();
    },
    get now() {
      return now();
    },
    get sounds() {
      return isSounding;
    },
    pass,
    async says(text) {
      const user = server.connections.at(-1)?.user;
      if (!user) throw new Error('Expected the session to have connected');
      const durationMs = Math.max(LEAST_SPEECH_MS, MS_PER_CHARACTER * text.length);
      const beganAt = now();
      client.isLoud = true;
      await pass(NOTICED_AFTER_MS);
      const said = user.says(text, { durationMs: durationMs - NOTICED_AFTER_MS });
      await pass(durationMs - NOTICED_AFTER_MS);
      client.isLoud = false;
      await said;
      const endedAt = now();
      return { beganAt, endedAt };
    },
    finish: async () => ({
      sounds,
      yielded,
      errors,
      said: state()
        .transcript.filter(({ role, text }) => role === 'assistant' && text !== '')
        .map(({ text }) => text),
    }),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
      client.stop();
      leave();
      await server.close();
    },
  };
}
