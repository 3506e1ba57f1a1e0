// A machine that no journal keeps: its effects are carried out before `send` returns, those that an effect leads to
// first, and its deadlines are timers of this process.
//
// Owns:     the machine, and its timers.
// Does not: know the meaning of an effect, or the facts that an event carries (its owner does).

import type { AnyStateMachine, EventObject, InputFrom, SnapshotFrom } from 'xstate';
import type { DeadlineInput } from '../../machines/index.ts';
import type { Host } from './host.ts';
import { Hosted, type Effect, type Shown } from './hosting.ts';

export interface TransientOptions<M extends AnyStateMachine, Fact> {
  readonly input: InputFrom<M>;
  /** Whether its deadlines keep no process alive. */
  readonly isBackground: boolean;
  /** Receives the fact that a deadline has passed. */
  due(fact: Fact): void;
  carryOut(name: string, params: unknown): void;
}

export class TransientMachine<M extends AnyStateMachine, Fact> {
  readonly #host: Pick<Host, 'environment' | 'actors'>;
  readonly #options: TransientOptions<M, Fact>;
  readonly #machine: Hosted<M>;
  readonly #timers = new Map<string, () => void>();
  readonly #effects: Effect[] = [];
  #isOver = false;

  /** @param id The path of its actor. */
  constructor(
    machine: M,
    id: string,
    host: Pick<Host, 'environment' | 'actors'>,
    options: TransientOptions<M, Fact>,
  ) {
    this.#host = host;
    this.#options = options;
    const post = (effect: Effect): void => void this.#effects.push(effect);
    const { input } = options;
    this.#machine = new Hosted(machine, { input }, { post }, { id, actors: host.actors });
  }

  /** The machine, as its actor shows it. */
  get shown(): Shown {
    return this.#machine;
  }

  get snapshot(): SnapshotFrom<M> {
    return this.#machine.snapshot;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  send(event: EventObject): void {
    if (this.#isOver) return;
    this.#machine.send(event);
    for (const effect of this.#effects.splice(0)) this.#carryOut(effect);
  }

  /** Ends it for good: its observers complete, no deadline passes any more, and no event counts. */
  end(): void {
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
    } else this.#options.carryOut(effect.name, effect.params);
  }

  #arm(id: string, { dueAt, event: type }: DeadlineInput): void {
    const { clock, scheduler } = this.#host.environment;
    const { isBackground } = this.#options;
    const due = (): void => {
      this.#timers.delete(id);
      this.#options.due({ type, dueAt } as Fact);
    };
    this.#timers.set(id, scheduler.schedule(due, dueAt - clock.now(), { isBackground }));
  }
}
