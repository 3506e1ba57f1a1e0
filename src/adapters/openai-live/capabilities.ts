// What the Live wire can do, as it was chosen to be used.

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
    // Where it is certain; a response that may have another cause has no key.
    correlatesResponses: true,
    // The model speaks on, but nobody hears it.
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
    // The server says with `expires_at` when a session ends.
    maxConnectionMs: null,
  });
}
