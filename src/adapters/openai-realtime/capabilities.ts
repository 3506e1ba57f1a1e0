// What the GA Realtime wire can do.

import type { TransportCapabilities } from '../../voice/transport.ts';
import { WIRE_SAMPLE_RATE_HZ } from './wire/index.ts';

export const openaiRealtimeCapabilities: TransportCapabilities = Object.freeze({
  inputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
  outputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
  utteranceEvents: true,
  correlatesResponses: true,
  cancelsResponses: true,
  truncatesAudio: true,
  deletesItems: true,
  silentContext: true,
  defersToolResults: true,
  updatesSession: true,
});
