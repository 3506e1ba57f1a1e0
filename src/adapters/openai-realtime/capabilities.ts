// What the GA Realtime wire can do.

import type { TransportCapabilities } from '../../voice/transport.ts';
import { WIRE_SAMPLE_RATE_HZ } from './wire/index.ts';

export const openaiRealtimeCapabilities: TransportCapabilities = Object.freeze({
  inputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
  outputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
  utterances: 'reported',
  responds: 'when_asked',
  correlatesResponses: true,
  cancelsResponses: true,
  truncatesAudio: true,
  deletesItems: true,
  silentContext: true,
  toolCalls: 'named',
  defersToolResults: true,
  schedulesToolResults: false,
  updatesSession: true,
  resumes: false,
  acceptsImages: true,
  // A session lasts an hour at most; the server says with `expires_at` when it ends.
  maxConnectionMs: 60 * 60_000,
});
