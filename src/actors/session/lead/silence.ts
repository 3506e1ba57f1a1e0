// The silence machine of a session by voice, hosted beside the turn: it is told what is going on, and asks an open
// question again or reports that the user is away.
//
// Owns:     the machine and its deadlines.
// Does not: know who speaks (turns), or how often a question may be asked again (question machine).

import type { LeadSession } from './lead-session.ts';
import { Hosted, type Effect, type Shown } from '../../runtime/hosting.ts';
import {
  silenceMachine,
  type SilenceEvent,
  type SilenceFact,
  type SilenceInput,
  type SilenceState,
} from '../../../machines/index.ts';
import type { DeadlineInput } from '../../../machines/effect.ts';

export class Silence {
  readonly #core: LeadSession;
  readonly #machine: Hosted<typeof silenceMachine>;
  readonly #timers = new Map<string, () => void>();
  readonly #effects: Effect[] = [];
  #state: SilenceState = 'loud';

  constructor(core: LeadSession, { nudgeAfterMs, awayAfterMs }: SilenceInput) {
    this.#core = core;
    const post = (effect: Effect): void => void this.#effects.push(effect);
    const seat = { id: `${core.id}/silence`, actors: core.host.actors };
    const input = { nudgeAfterMs, awayAfterMs };
    this.#machine = new Hosted(silenceMachine, { input }, { post }, seat);
  }

  /** The machine, as its actor shows it. */
  get shown(): Shown {
    return this.#machine;
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
    this.changed('loud');
    this.#machine.end();
  }

  #send(fact: SilenceFact): void {
    const { clock } = this.#core.host.environment;
    const event: SilenceEvent = { ...fact, at: clock.now() };
    this.#machine.send(event);
    for (const effect of this.#effects.splice(0)) this.#carryOut(effect);
  }

  #carryOut(effect: Effect): void {
    const { clock, scheduler } = this.#core.host.environment;
    if (effect.kind === 'stop') {
      this.#timers.get(effect.id)?.();
      this.#timers.delete(effect.id);
    } else if (effect.kind === 'start') {
      const { dueAt, event } = effect.input as DeadlineInput;
      const due = (): void => {
        this.#timers.delete(effect.id);
        this.#send({ type: event, dueAt } as SilenceFact);
      };
      this.#timers.set(
        effect.id,
        scheduler.schedule(due, dueAt - clock.now(), { isBackground: true }),
      );
    } else if (effect.name === 'nudge') this.#nudge();
    else if (effect.name === 'away')
      this.#core.projection.emit({
        type: 'user.away',
        silentMs: (effect.params as { readonly silentMs: number }).silentMs,
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
