// The turn machine of one session, hosted beside it: a lead agent sends it facts, and carries out its effects.
//
// A session that is opened again starts with a new turn.
//
// Owns:     the machine, and the facts that it cannot look up.
// Does not: know the state of the turn (machine) or the meaning of an effect (leads).

import {
  turnMachine,
  type TurnEffects,
  type TurnEvent,
  type TurnFact,
  type TurnInput,
  type TurnSnapshot,
} from '../../../machines/index.ts';
import type { Environment } from '../../ports/environment.ts';
import type { Host } from '../../runtime/host.ts';
import type { Shown } from '../../runtime/hosting.ts';
import { TransientMachine } from '../../runtime/transient-machine.ts';

/** The meaning of the effects; a lead leaves out those that never concern it. */
export type TurnHandlers = {
  readonly [Name in keyof TurnEffects]?: (params: TurnEffects[Name]) => void;
};

export class TurnChart {
  readonly #environment: Environment;
  readonly #isFree: () => boolean;
  readonly #machine: TransientMachine<typeof turnMachine, TurnFact>;

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
    this.#isFree = isFree;
    const byName = handlers as Record<string, ((params: unknown) => void) | undefined>;
    this.#machine = new TransientMachine(turnMachine, `${id}/turn`, host, {
      input,
      isBackground: false,
      due: (fact) => this.send(fact),
      carryOut: (name, params) => byName[name]?.(params),
    });
  }

  /** The machine, as its actor shows it. */
  get shown(): Shown {
    return this.#machine.shown;
  }

  get snapshot(): TurnSnapshot {
    return this.#machine.snapshot;
  }

  get context(): TurnSnapshot['context'] {
    return this.snapshot.context;
  }

  send(fact: TurnFact): void {
    const at = this.#environment.clock.now();
    const event: TurnEvent = { ...fact, at, isFree: this.#isFree() };
    this.#machine.send(event);
  }

  get isOver(): boolean {
    return this.#machine.isOver;
  }

  /** Stops for good: no deadline passes any more, and no fact counts. */
  stop(): void {
    this.#machine.end();
  }
}
