// A machine that is not in a journal. Its effects are executed depth-first before `send` returns; its deadlines are
// timers in this process.
//
// Owns:     the machine, and its timers.
// Does not: interpret effects (its owner does).

import type { AnyStateMachine, EventObject, InputFrom, SnapshotFrom } from 'xstate';
import type { DeadlineInput } from '../../machines/index.ts';
import type { Host } from './host.ts';
import { Draft } from './draft.ts';
import { Population, type Effect, type Shown } from './hosting.ts';

export interface TransientOptions<M extends AnyStateMachine, Fact, Effects> {
  readonly input: InputFrom<M>;
  /** Whether an otherwise idle process may end while a deadline is pending. */
  readonly isBackground: boolean;
  /** Returns the current facts that are added to each event. @defaultValue none */
  now?(): object;
  /** Called with the event of a deadline that has passed. @defaultValue the machine receives it */
  due?(fact: Fact): void;
  /** The handlers of the effects. An owner may omit effects that it does not need. */
  readonly handlers: { readonly [Name in keyof Effects]?: (params: Effects[Name]) => void };
}

export class TransientMachine<M extends AnyStateMachine, Fact extends EventObject, Effects> {
  readonly #host: Pick<Host, 'environment' | 'actors'>;
  readonly #options: TransientOptions<M, Fact, Effects>;
  readonly #machine: Population<M>;
  readonly #timers = new Map<string, () => void>();
  readonly #effects: Effect[] = [];
  isOver = false;

  /** @param id The path of the machine's actor. */
  constructor(
    machine: M,
    id: string,
    host: Pick<Host, 'environment' | 'actors'>,
    options: TransientOptions<M, Fact, Effects>,
  ) {
    this.#host = host;
    this.#options = options;
    const post = (_: string, effect: Effect): void => void this.#effects.push(effect);
    this.#machine = new Population(machine, '', { id, draft: new Draft(), post }, host, id);
    this.#machine.create('', options.input);
  }

  /** The machine, as exposed through its actor. */
  get shown(): Shown {
    return this.#machine.shown();
  }

  get snapshot(): SnapshotFrom<M> {
    return this.#machine.snapshot;
  }

  send(fact: Fact): void {
    if (this.isOver) return;
    const at = this.#host.environment.clock.now();
    this.#machine.apply('', { ...fact, at, ...this.#options.now?.() });
    for (const effect of this.#effects.splice(0)) this.#carryOut(effect);
  }

  /** Ends the machine permanently: its observers complete, no timer fires, and `send` does nothing. */
  stop(): void {
    this.isOver = true;
    this.#machine.stop();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #carryOut(effect: Effect): void {
    if (effect.kind === 'start') this.#arm(effect.id, effect.input as DeadlineInput);
    else if (effect.kind === 'stop') {
      this.#timers.get(effect.id)?.();
      this.#timers.delete(effect.id);
    }
    // The machine declares `Effects`, so the params match this name.
    else this.#options.handlers[effect.name as keyof Effects]?.(effect.params as never);
  }

  #arm(id: string, { dueAt, event: type }: DeadlineInput): void {
    const { clock, scheduler } = this.#host.environment;
    const { isBackground } = this.#options;
    const due = (): void => {
      this.#timers.delete(id);
      const fact = { type, dueAt } as EventObject as Fact;
      if (this.#options.due) this.#options.due(fact);
      else this.send(fact);
    };
    this.#timers.set(id, scheduler.schedule(due, dueAt - clock.now(), { isBackground }));
  }
}
