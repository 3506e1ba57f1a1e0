// A model that writes text, wrapped in `withVoice`, passes the suite for voice models.

import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import { scriptedVoice, type ConformanceSetup } from '../../../src/testing/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { withVoice } from '../../../src/voice/voiced/with-voice.ts';
import { runConformance } from './support/run-conformance.ts';

const written = voiceServerStage({
  wire: 'openai-realtime',
  transport: (webSocket) =>
    openaiRealtime({ apiKey: 'some-key', output: 'text', webSocket, keepAliveMs: null }),
});

function voiced(name: string, latencyMs: number): ConformanceSetup {
  return {
    name,
    shows: written.shows,
    async open(world) {
      const stage = await written.open(world);
      const voice = scriptedVoice({ environment: world.environment, latencyMs });
      return {
        transport: withVoice(stage.transport, { voice }),
        get models() {
          return stage.models;
        },
        close: () => stage.close?.(),
      };
    },
  };
}

runConformance(voiced('openai-realtime with a voice', 0));
runConformance(voiced('openai-realtime with a slow voice', 400));
