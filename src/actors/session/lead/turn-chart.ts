// The turn machine of one session, hosted beside it: a lead agent sends it facts, and carries out its effects.
//
// An effect is carried out at once, before `send` returns. A fact that an effect leads to is taken in then, before
// the effects that follow. Nothing is journalled: a session that is opened again starts with a new turn.
//
// Owns:     the machine, its deadlines, and the facts that it cannot look up.
// Does not: know the state of the turn (machine) or the meaning of an effect (leads).

import {
  turnMachine,
  type DeadlineInput,
  type TurnEffects,
  type TurnEvent,
  type TurnFact,
  type TurnInput,
  type TurnSnapshot,
} from '../../../machines/index.ts';
import type { Environment } from '../../ports/environment.ts';
import type { Host } from '../../runtime/host.ts';
import { Hosted, type Effect, type Shown } from '../../runtime/hosting.ts';

/** The meaning of the effects; a lead leaves out those that never concern it. */
export type TurnHandlers = {
  readonly [Name in keyof TurnEffects]?: (params: TurnEffects[Name]) => void;
};

export class TurnChart {
  readonly #environment: Environment;
  readonly #handlers: TurnHandlers;
  readonly #isFree: () => boolean;
  readonly #machine: Hosted<typeof turnMachine>;
  readonly #timers = new Map<string, () => void>();
  readonly #effects: Effect[] = [];
  #isOver = false;

  /**
   * @param isFree Returns whether the model can be asked: it is connected, and works on nothing else.
   */
  constructor(
    { id, host }: { readonly id: string; readonly host: Pick<Host, 'environment' | 'actors'> },
    input: TurnInput,
    isFree: () => boolean,
    handlers: TurnHandlers,
  ) {
    this.#environment = host.environment;
    this.#handlers = handlers;
    this.#isFree = isFree;
    const post = (effect: Effect): void => void this.#effects.push(effect);
    const seat = { id: `${id}/turn`, actors: host.actors };
    this.#machine = new Hosted(turnMachine, { input }, { post }, seat);
  }

  /** The machine, as its actor shows it. */
  get shown(): Shown {
    return this.#machine;
  }

  get snapshot(): TurnSnapshot {
    return this.#machine.snapshot;
  }

  get context(): TurnSnapshot['context'] {
    return this.snapshot.context;
  }

  send(fact: TurnFact): void {
    if (this.#isOver) return;
    const at = this.#environment.clock.now();
    const event: TurnEvent = { ...fact, at, isFree: this.#isFree() };
    this.#machine.send(event);
    for (const effect of this.#effects.splice(0)) this.#carryOut(effect);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Stops for good: no deadline passes any more, and no fact counts. */
  stop(): void {
    this.#isOver = true;
    this.#machine.end();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #carryOut(effect: Effect): void {
    if (effect.kind === 'start') this.#arm(effect.id, effect.input as DeadlineInput);
    else if (effect.kind === 'stop') {
      this.#timers.get(effect.id)?.();
      this.#timers.delete(effect.id);
    } else {
      const handlers = this.#handlers as Record<string, (params: unknown) => void>;
      handlers[effect.name]?.(effect.params);
    }
  }

  #arm(id: string, { dueAt, event }: DeadlineInput): void {
    const { clock, scheduler } = this.#environment;
    const due = (): void => {
      this.#timers.delete(id);
      this.send({ type: event, dueAt } as TurnFact);
    };
    this.#timers.set(id, scheduler.schedule(due, dueAt - clock.now()));
  }
}
