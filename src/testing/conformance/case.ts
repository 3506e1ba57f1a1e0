// A case of the suite: a conversation, and the outcome that it requires in addition to the general promises.

import type { ConformanceFault, ConformanceSetup } from './stage.ts';
import { ConformanceError } from './conformance-error.ts';
import { neglectedDuties } from './port-duties.ts';
import { brokenPromises } from './promises.ts';
import type { TalkOptions } from './session-of-case.ts';
import { Talk } from './talk.ts';

export interface ConformanceScene extends TalkOptions {
  readonly name: string;
  /** The faults that the stage must be able to simulate for this case. */
  readonly needs?: readonly ConformanceFault[];
  /** The conversation. Afterwards, the case waits for unfinished work. */
  readonly plot: (talk: Talk) => Promise<void>;
  /** Checks the outcome when everything is idle. */
  readonly outcome?: (talk: Talk) => void;
}

/** The error for a model that hangs. If a case makes the model hang, the transport is not blamed for it. */
const HANGS = 'RESPONSE_TIMEOUT';

/** @throws {ConformanceError} if a promise is broken or the outcome is wrong */
export async function play(
  setup: ConformanceSetup,
  makeScene: () => ConformanceScene,
): Promise<void> {
  const scene = makeScene();
  const talk = await Talk.begin(setup, scene);
  let hasEnded = false;
  try {
    await scene.plot(talk);
    await talk.calm();
    scene.outcome?.(talk);
    hasEnded = true;
  } finally {
    const ended = talk.end();
    // The first failure says more than another failure during the shutdown.
    await (hasEnded ? ended : ended.catch(() => {}));
  }
  const mayHang = scene.provokes?.includes(HANGS) === true;
  const isNoisy = scene.needs?.includes('television') === true;
  const faults = [
    ...brokenPromises(talk),
    ...talk.tap.connections.flatMap((connection) =>
      neglectedDuties(connection, { mayHang, isNoisy }),
    ),
    ...leftovers(talk),
  ];
  if (faults.length > 0) throw new ConformanceError(`${faults.join('\n')}\n${talk.story()}`);
}

function leftovers({ environment, leftOpen: open }: Talk): readonly string[] {
  const { pendingTimers } = environment;
  return [
    ...(pendingTimers > 0 ? [`${pendingTimers} timers are left of a session that is closed`] : []),
    ...(open > 0 ? [`${open} connections are left open by a session that is closed`] : []),
  ];
}
