// The latency that a voice session adds to audio and words, compared with a bare relay of the same frames: over real
// sockets, with 50 and 200 conversations. All times come from the same conversations: the lateness of frames, and the
// delays of answers, silence and results. Then again with a small young generation, the recommended setting of a
// server that carries voice.

import type { Line, Measurement } from '../lib/measurement.ts';
import { offstageBridge, relayBridge } from '../lib/voice-bridges.ts';
import { converse } from '../lib/voice-stage.ts';

const percentiles = (figure: string, what: string, goal: Line['goal'] = null): Line[] => [
  { figure: `${figure}_p50`, unit: 'ms', number: `${what}_p50`, floor: 'floor', goal: null },
  {
    figure: `${figure}_p99`,
    unit: 'ms',
    number: `${what}_p99`,
    floor: 'floor',
    goal,
  },
];

/** `goal`: the maximum delay of a turn and of silence. */
const measurement = (
  suffix: string,
  goal: Line['goal'],
  nodeOptions: readonly string[] = [],
): Measurement => ({
  contenders: {
    offstage: (n) => converse(n, offstageBridge()),
    floor: (n) => converse(n, relayBridge()),
  },
  sizes: [50, 200],
  nodeOptions,
  repetitions: 3,
  lines: [
    ...percentiles(`voice_turn_latency${suffix}`, 'turn', goal),
    ...percentiles(`voice_offer_latency${suffix}`, 'offer'),
    ...percentiles(`voice_barge_in${suffix}`, 'bargeIn', goal),
    ...percentiles(`voice_relay_lateness_up${suffix}`, 'up'),
    ...percentiles(`voice_relay_lateness_down${suffix}`, 'down'),
    {
      figure: `voice_cpu${suffix}`,
      unit: '% of a core',
      number: 'cpu',
      floor: 'floor',
      goal: { ratio: 1.8 },
    },
  ],
});

export const voice = measurement('', null);
export const voiceSmall = measurement('_small_young', { aboveFloor: 10 }, [
  '--max-semi-space-size=4',
]);
