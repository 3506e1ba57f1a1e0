import { geminiLive, type GeminiLiveOptions } from '../../../src/adapters/gemini-live/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { runConformance } from './support/run-conformance.ts';

/** One model from each family in the capability table, and one model that is not in the table. */
const models: readonly GeminiLiveOptions[] = [
  { model: 'gemini-2.5-flash-native-audio-preview-12-2025' },
  { model: 'gemini-3.1-flash-live' },
  { model: 'gemini-3.8-live' },
  { model: 'gemini-3.8-live-extended-thinking', thinking: { level: 'low' } },
  { model: 'gemini-9-live' },
];

for (const options of models)
  runConformance(
    voiceServerStage({
      name: options.model ?? '',
      wire: 'gemini-live',
      transport: (webSocket) =>
        geminiLive({ apiKey: 'some-key', webSocket, keepAliveMs: null, ...options }),
    }),
  );
