// A voice session on a transport in this process. The bench tells the model when to speak and reports the user's
// speech.

import { Subject } from 'rxjs';
import type { AudioFrame, Transport } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { SIMULATED_CAPABILITIES } from '../../src/testing/simulate/voice-stage.ts';
import type { TransportEvent } from '../../src/voice/connection/transport.ts';
import { spokenLead } from '../../src/voice/spoken-lead.ts';

const SAMPLE_RATE_HZ = 24_000;

export interface VoiceDesk {
  readonly session: VoiceSession;
  /** Makes the model speak a second of audio, which the client begins to play. */
  speak(): void;
  /** Reports from the wire that the user began to speak. */
  userSpeaks(): void;
  /** Reports that the user only coughed, and how much the client had played. */
  userCoughed(): void;
}

export async function openVoiceDesk(): Promise<VoiceDesk> {
  const events = new Subject<TransportEvent>();
  const audio = new Subject<AudioFrame>();
  const transport: Transport = {
    name: 'bench',
    lead: spokenLead,
    capabilities: {
      ...SIMULATED_CAPABILITIES,
      inputSampleRateHz: SAMPLE_RATE_HZ,
      outputSampleRateHz: SAMPLE_RATE_HZ,
    },
    connect() {
      queueMicrotask(() => events.next({ type: 'transport.ready' }));
      return { events, audio, sendAudio() {}, send() {}, close: () => Promise.resolve() };
    },
  };
  const session = new VoiceSession({
    transport,
    agents: [{ name: 'lead', instructions: 'You talk to the user.' }],
  });
  session.attach();
  session.store.subscribe(() => {});
  await session.start();
  let number = 0;
  return {
    session,
    speak() {
      number += 1;
      audio.next({
        samples: new Int16Array(SAMPLE_RATE_HZ),
        sampleRateHz: SAMPLE_RATE_HZ,
        itemId: `item_${number}`,
        responseId: `response_${number}`,
      });
      session.playout.next({ itemId: `item_${number}`, playedMs: 20 });
    },
    userSpeaks() {
      events.next({
        type: 'utterance.started',
        utteranceId: `utterance_${number}`,
        audioStartMs: number,
      });
    },
    userCoughed() {
      const utteranceId = `utterance_${number}`;
      session.playout.next({ itemId: `item_${number}`, playedMs: 40 });
      events.next({ type: 'utterance.ended', utteranceId });
      events.next({ type: 'utterance.transcribed', utteranceId, text: '', final: true });
    },
  };
}
