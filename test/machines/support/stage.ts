// A machine as an app runs it: a live actor whose effects are kept, whose deadlines are real
// actors on a simulated clock, and whose other activities run until they are stopped.

import {
  createActor,
  fromCallback,
  type Actor,
  type AnyStateMachine,
  type EventFromLogic,
  type EventObject,
  type InputFrom,
} from 'xstate';
import { isEffect, type DeadlineInput } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

type Unstamped<E> = E extends unknown ? Omit<E, 'at'> : never;

/** What the machine asked for: an effect with its params, or an activity with its input. */
export type Told = readonly [name: string, params: unknown];

export class Stage<M extends AnyStateMachine> {
  readonly actor: Actor<M>;
  readonly environment = simulatedEnvironment({ startAt: 0 });
  /** The deadlines that have not fired. */
  readonly armed = new Set<DeadlineInput>();
  #told: Told[] = [];

  /** Starts the machine at time 0. */
  constructor(machine: M, input?: InputFrom<M>) {
    const { actions, actors } = machine.implementations;
    const effects = Object.keys(actions).filter((name) => isEffect(actions[name]));
    const provided = machine.provide({
      actions: Object.fromEntries(
        effects.map((name) => [
          name,
          (_args: unknown, params: unknown) => this.#told.push([name, params]),
        ]),
      ),
      actors: Object.fromEntries(Object.keys(actors).map((name) => [name, this.#activity(name)])),
    } as never) as M;
    this.actor = createActor(provided, { input } as never);
    this.actor.start();
  }

  get now(): number {
    return this.environment.clock.now();
  }

  send(event: Unstamped<EventFromLogic<M>>): this {
    this.actor.send({ ...event, at: this.now } as never);
    return this;
  }

  async wait(ms: number): Promise<this> {
    await this.environment.advance(ms);
    return this;
  }

  /** What it asked for since the last time, in order. */
  told(): readonly Told[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }

  #activity(name: string) {
    const { clock, scheduler } = this.environment;
    return fromCallback<EventObject, DeadlineInput>(({ input, sendBack }) => {
      if (name !== 'deadline') {
        this.#told.push([name, input]);
        return undefined;
      }
      this.armed.add(input);
      const cancel = scheduler.schedule(() => {
        this.armed.delete(input);
        sendBack({ type: input.event, dueAt: input.dueAt, at: clock.now() } as EventObject);
      }, input.dueAt - clock.now());
      return () => {
        cancel();
        this.armed.delete(input);
      };
    });
  }
}
