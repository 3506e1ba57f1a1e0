// From the client's speech event to silence: until the session tells the client to drop unplayed audio. The event
// comes from another thread, as from a socket, while n subagents keep the event loop busy.

import { Worker } from 'node:worker_threads';
import { subagentCrowd } from '../lib/crowd.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { settled } from '../lib/process.ts';
import { p50p99 } from '../lib/statistics.ts';
import { openVoiceDesk } from '../lib/voice-desk.ts';
import { tripModel } from '../lib/workload.ts';

const WARM_UP = 50;
const SAMPLES = 300;

async function offstage(n: number): Promise<Numbers> {
  if (n > 0) subagentCrowd(n, tripModel);
  const desk = await openVoiceDesk();
  await settled();
  const samples: number[] = [];
  let spokeAt: number | null = null;
  desk.session.events.subscribe(({ type }) => {
    if (type !== 'playout.clear' || spokeAt === null) return;
    samples.push(performance.timeOrigin + performance.now() - spokeAt);
    spokeAt = null;
  });
  const caller = new Worker(new URL('../caller-worker.ts', import.meta.url), {
    workerData: { times: WARM_UP + SAMPLES },
  });
  desk.speak();
  caller.on('message', (at: number) => {
    spokeAt = at;
    desk.userSpeaks();
    if (spokeAt !== null) throw new Error('The user spoke, and it did not fall silent');
    desk.userCoughed();
    desk.speak();
  });
  await new Promise((resolve) => caller.once('exit', resolve));
  return p50p99(samples.slice(WARM_UP));
}

export const bargeIn: Measurement = {
  contenders: { offstage },
  sizes: [0, 200],
  repetitions: 3,
  lines: [
    { figure: 'barge_in_p50', unit: 'ms', number: 'p50', floor: null, goal: null },
    { figure: 'barge_in_p99', unit: 'ms', number: 'p99', floor: null, goal: null },
  ],
};
