// Runs a machine as an app would, in a live actor. The effects are recorded, the deadlines are armed on a simulated
// clock, and the other activities run until they are stopped.

import {
  createActor,
  type Actor,
  type AnyStateMachine,
  type EventFromLogic,
  type InputFrom,
} from 'xstate';
import { isEffect, type Activity, type DeadlineInput } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

type Unstamped<E> = E extends unknown ? Omit<E, 'at'> : never;

/** A request from the machine: an effect with its params, or an activity with its input. */
type Told = readonly [name: string, params: unknown];

/** An actor's actions and activities share only the system, so the stage is found through the system. */
const stages = new WeakMap<object, Stage<AnyStateMachine>>();
const provided = new WeakMap<AnyStateMachine, AnyStateMachine>();

export class Stage<M extends AnyStateMachine> {
  readonly actor: Actor<M>;
  readonly environment = simulatedEnvironment({ startAt: 0 });
  /** The deadlines that have not fired yet. */
  readonly armed = new Set<DeadlineInput>();
  /** The number of deadlines that have fired. */
  fired = 0;
  readonly #told: Told[] = [];
  readonly #disarms = new Map<string, () => void>();

  /** Starts the machine at time 0. */
  constructor(machine: M, input?: InputFrom<M>) {
    this.actor = createActor(staged(machine), { input } as never) as unknown as Actor<M>;
    stages.set(this.actor.system, this as never);
    this.actor.start();
  }

  get now(): number {
    return this.environment.clock.now();
  }

  send(event: Unstamped<EventFromLogic<M>>, at = this.now): this {
    this.actor.send({ ...event, at } as never);
    return this;
  }

  /** Stops the actor. No deadline fires after that. */
  stop(): void {
    this.actor.stop();
    for (const id of this.#disarms.keys()) this.end({ id });
  }

  async wait(ms: number): Promise<this> {
    await this.environment.advance(ms);
    return this;
  }

  /** Returns the requests since the last call, in order. */
  told(): readonly Told[] {
    return this.#told.splice(0);
  }

  tell(name: string, params: unknown): void {
    this.#told.push([name, params]);
  }

  /** Arms a deadline. Any other activity runs until it is stopped. */
  begin({ name, id, input }: Activity): void {
    if (name !== 'deadline') {
      this.tell(name, input);
      return;
    }
    const { clock, scheduler } = this.environment;
    const due = input as DeadlineInput;
    this.armed.add(due);
    const cancel = scheduler.schedule(() => {
      this.armed.delete(due);
      this.fired += 1;
      this.actor.send({ type: due.event, dueAt: due.dueAt, at: clock.now() } as never);
    }, due.dueAt - clock.now());
    this.#disarms.set(id, () => {
      cancel();
      this.armed.delete(due);
    });
  }

  end({ id }: Pick<Activity, 'id'>): void {
    this.#disarms.get(id)?.();
    this.#disarms.delete(id);
  }
}

/** Returns the machine with its effects and activities sent to the stage of its actor. The machine is created once. */
function staged(machine: AnyStateMachine): AnyStateMachine {
  const known = provided.get(machine);
  if (known !== undefined) return known;
  const { actions } = machine.implementations;
  const effects = Object.keys(actions).filter((name) => isEffect(actions[name]));
  const made = machine.provide({
    actions: Object.fromEntries(
      effects.map((name) => [
        name,
        ({ system }: { system: object }, params: unknown) => {
          const stage = stages.get(system);
          if (name === 'startActivity') stage?.begin(params as Activity);
          else if (name === 'stopActivity') stage?.end(params as Activity);
          else stage?.tell(name, params);
        },
      ]),
    ),
  } as never);
  provided.set(machine, made);
  return made;
}
