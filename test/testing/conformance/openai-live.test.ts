import { openaiLive } from '../../../src/adapters/openai-live/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { runConformance } from './support/run-conformance.ts';

for (const store of [false, true])
  runConformance(
    voiceServerStage({
      name: store ? 'openai-live, stored' : 'openai-live',
      wire: 'openai-live',
      transport: (webSocket) =>
        openaiLive({ apiKey: 'some-key', webSocket, keepAliveMs: null, store }),
    }),
  );
