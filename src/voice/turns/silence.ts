// Hosts a voice session's silence machine, separately from the turn. The machine asks an open question again, or
// reports that the user is away.
//
// Owns:     the machine.
// Does not: know who speaks (turns), or limit how often a question is asked again (question machine).

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

export class Silence {
  readonly #core: LeadSession;
  readonly #machine: TransientMachine<typeof silenceMachine, SilenceFact, SilenceEffects>;
  #state: SilenceState = 'loud';

  constructor(core: LeadSession, { nudgeAfterMs, awayAfterMs }: SilenceInput) {
    this.#core = core;
    const { projection } = core;
    this.#machine = new TransientMachine<typeof silenceMachine, SilenceFact, SilenceEffects>(
      silenceMachine,
      `${core.id}/silence`,
      core.host,
      {
        input: { nudgeAfterMs, awayAfterMs },
        isBackground: true,
        handlers: {
          nudge: () => this.#nudge(),
          away: ({ silentMs }) => projection.emit({ type: 'user.away', silentMs }),
          back: () => projection.emit({ type: 'user.back' }),
        },
      },
    );
  }

  /** The silence machine, as shown by its actor. */
  get shown(): Shown {
    return this.#machine.shown;
  }

  /** Passes a changed state to the machine. */
  changed(to: SilenceState): void {
    if (to === this.#state) return;
    this.#state = to;
    this.#machine.send({ type: 'silence.changed', to });
  }

  /** Records that the user speaks, writes or answers. */
  noticed(): void {
    this.#machine.send({ type: 'user.noticed' });
  }

  stop(): void {
    this.#machine.stop();
  }

  #nudge(): void {
    const { unit, agents } = this.#core;
    const { owner } = unit;
    const { language } = agents.current;
    if (owner === null) return;
    this.#core.receive(`question:${owner}`, {
      type: 'question.nudge',
      ...(language === undefined ? {} : { language }),
    });
  }
}
