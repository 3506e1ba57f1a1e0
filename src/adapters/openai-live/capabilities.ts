// The abilities of the Live wire as this transport uses it.

import type { TransportCapabilities } from '../../voice/connection/transport.ts';
import type { OpenaiLiveSettings } from './options.ts';

export function openaiLiveCapabilities({
  sampleRateHz,
  store,
}: Pick<OpenaiLiveSettings, 'sampleRateHz' | 'store'>): TransportCapabilities {
  return Object.freeze({
    inputSampleRateHz: sampleRateHz,
    outputSampleRateHz: sampleRateHz,
    output: 'audio',
    utterances: 'inferred',
    endsUtterances: true,
    responds: 'by_itself',
    // Only if it is certain; a response that may have another cause has no key.
    correlatesResponses: true,
    // The model keeps speaking, but its sound is dropped.
    cancelsResponses: true,
    truncatesAudio: false,
    deletesItems: false,
    speaksOutOfBand: false,
    silentContext: true,
    takesSystemMessages: true,
    toolCalls: 'delegation',
    defersToolResults: true,
    schedulesToolResults: false,
    updatesSession: false,
    resumes: store,
    acceptsImages: false,
    // The server states the end of a session in `expires_at`.
    maxConnectionMs: null,
  });
}
