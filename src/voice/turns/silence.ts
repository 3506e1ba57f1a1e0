// Hosts the silence machine of a voice session, separately from the turn. The machine asks an open question again, or
// reports that the user is away.
//
// Owns:     the machine.
// Does not: determine who is speaking (turns), or limit how often a question is asked again (question machine).

import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import type { Shown } from '../../actors/runtime/hosting.ts';
import { TransientMachine } from '../../actors/runtime/transient-machine.ts';
import {
  type SilenceEffects,
  silenceMachine,
  type SilenceFact,
  type SilenceInput,
  type SilenceState,
} from '../../machines/silence-machine.ts';

export type Silence = ReturnType<typeof silenceChart>;

export function silenceChart(core: LeadSession, { nudgeAfterMs, awayAfterMs }: SilenceInput) {
  let state: SilenceState = 'loud';
  const { projection } = core;
  const machine = new TransientMachine<typeof silenceMachine, SilenceFact, SilenceEffects>(
    silenceMachine,
    `${core.id}/silence`,
    core.host,
    {
      input: { nudgeAfterMs, awayAfterMs },
      isBackground: true,
      handlers: {
        nudge: () => nudge(),
        away: ({ silentMs }) => projection.emit({ type: 'user.away', silentMs }),
        back: () => projection.emit({ type: 'user.back' }),
      },
    },
  );

  function nudge(): void {
    const { unit, agents } = core;
    const { owner } = unit;
    const { language } = agents.current;
    if (owner === null) return;
    core.receive(`question:${owner}`, {
      type: 'question.nudge',
      ...(language === undefined ? {} : { language }),
    });
  }

  return {
    /** The silence machine's actor. */
    get shown(): Shown {
      return machine.shown;
    },
    changed(to: SilenceState): void {
      if (to === state) return;
      state = to;
      machine.send({ type: 'silence.changed', to });
    },
    /** Records that the user speaks, writes or answers. */
    noticed: (): void => machine.send({ type: 'user.noticed' }),
    stop: (): void => machine.stop(),
  };
}
