// The silence machine of a session by voice, hosted beside the turn: it is told what is going on, and asks an open
// question again or reports that the user is away.
//
// Owns:     the machine.
// Does not: know who speaks (turns), or how often a question may be asked again (question machine).

import type { LeadSession } from './lead-session.ts';
import type { Shown } from '../../runtime/hosting.ts';
import { TransientMachine } from '../../runtime/transient-machine.ts';
import {
  silenceMachine,
  type SilenceEvent,
  type SilenceFact,
  type SilenceInput,
  type SilenceState,
} from '../../../machines/index.ts';

export class Silence {
  readonly #core: LeadSession;
  readonly #machine: TransientMachine<typeof silenceMachine, SilenceFact>;
  #state: SilenceState = 'loud';

  constructor(core: LeadSession, { nudgeAfterMs, awayAfterMs }: SilenceInput) {
    this.#core = core;
    this.#machine = new TransientMachine(silenceMachine, `${core.id}/silence`, core.host, {
      input: { nudgeAfterMs, awayAfterMs },
      isBackground: true,
      due: (fact) => this.#send(fact),
      carryOut: (name, params) => this.#carryOut(name, params),
    });
  }

  /** The machine, as its actor shows it. */
  get shown(): Shown {
    return this.#machine.shown;
  }

  /** Takes in what is going on now. */
  changed(to: SilenceState): void {
    if (to === this.#state) return;
    this.#state = to;
    this.#send({ type: 'silence.changed', to });
  }

  /** The user speaks, writes or answers. */
  noticed(): void {
    this.#send({ type: 'user.noticed' });
  }

  stop(): void {
    this.#machine.end();
  }

  #send(fact: SilenceFact): void {
    const event: SilenceEvent = { ...fact, at: this.#core.host.environment.clock.now() };
    this.#machine.send(event);
  }

  #carryOut(name: string, params: unknown): void {
    if (name === 'nudge') this.#nudge();
    else if (name === 'away')
      this.#core.projection.emit({
        type: 'user.away',
        silentMs: (params as { readonly silentMs: number }).silentMs,
      });
    else this.#core.projection.emit({ type: 'user.back' });
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
