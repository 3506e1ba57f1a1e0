import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { runConformance } from './support/run-conformance.ts';

runConformance(
  voiceServerStage({
    wire: 'openai-realtime',
    transport: (webSocket) => openaiRealtime({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
  }),
);
