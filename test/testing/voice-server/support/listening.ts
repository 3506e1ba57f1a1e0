// Starts a voice server on a port of 127.0.0.1. The server closes when the test ends.

import { onTestFinished } from 'vitest';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import {
  createVoiceServer,
  echoResponder,
  type ListenOptions,
  type VoiceResponder,
  type VoiceServer,
  type VoiceServerAddress,
  type VoiceServerOptions,
} from '../../../../src/testing/voice-server/index.ts';
import { encodePcm16Base64 } from '../../../../src/voice/audio/pcm16.ts';

export const API_KEY = 'sk-test-0123456789abcdef';

export interface Listening {
  readonly server: VoiceServer;
  readonly address: VoiceServerAddress;
}

/** Short speech: Gemini waits in real time until its audio would have been played. */
const briefly: VoiceResponder = (turn) =>
  echoResponder(turn)?.map((step) => ('say' in step ? { ...step, durationMs: 100 } : step)) ?? null;

/** A fast server keeps the test short in real time. */
export async function listening({
  tls,
  ...options
}: Partial<VoiceServerOptions> & Pick<ListenOptions, 'tls'> = {}): Promise<Listening> {
  const environment = nodeEnvironment();
  const server = createVoiceServer({
    environment,
    apiKey: API_KEY,
    respond: briefly,
    speed: 50,
    ...options,
  });
  onTestFinished(() => server.close());
  return { server, address: await server.listen({ tls }) };
}

/** Silent PCM16 in Base64, by default at 24 kHz. */
export function silence(ms: number, sampleRateHz = 24_000): string {
  return encodePcm16Base64(new Int16Array((ms * sampleRateHz) / 1000));
}
