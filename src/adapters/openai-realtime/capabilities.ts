// The abilities of the GA Realtime wire.

import type { TransportCapabilities } from '../../voice/connection/transport.ts';
import { WIRE_SAMPLE_RATE_HZ } from './wire/index.ts';

/** `output`: what the model was chosen to answer in. */
export function openaiRealtimeCapabilities(
  output: TransportCapabilities['output'],
): TransportCapabilities {
  return Object.freeze({
    inputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
    outputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
    output,
    utterances: 'reported',
    // The buffer is committed.
    endsUtterances: true,
    responds: 'when_asked',
    correlatesResponses: true,
    cancelsResponses: true,
    // Only sound can be truncated.
    truncatesAudio: output === 'audio',
    deletesItems: true,
    speaksOutOfBand: true,
    silentContext: true,
    takesSystemMessages: true,
    toolCalls: 'named',
    defersToolResults: true,
    schedulesToolResults: false,
    updatesSession: true,
    resumes: false,
    acceptsImages: true,
    // A session lasts an hour at most; the server says with `expires_at` when it ends.
    maxConnectionMs: 60 * 60_000,
  });
}
