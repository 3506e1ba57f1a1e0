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
type Told = readonly [name: string, params: unknown];

/** The system of an actor is what its actions and its activities have in common. */
const stages = new WeakMap<object, Stage<AnyStateMachine>>();
const provided = new WeakMap<AnyStateMachine, AnyStateMachine>();

export class Stage<M extends AnyStateMachine> {
  readonly actor: Actor<M>;
  readonly environment = simulatedEnvironment({ startAt: 0 });
  /** The deadlines that have not fired. */
  readonly armed = new Set<DeadlineInput>();
  /** How many deadlines have fired. */
  fired = 0;
  readonly #told: Told[] = [];

  /** Starts the machine at time 0. */
  constructor(machine: M, input?: InputFrom<M>) {
    this.actor = createActor(staged(machine), { input } as never) as unknown as Actor<M>;
    stages.set(this.actor.system, this as never);
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
    return this.#told.splice(0);
  }

  tell(name: string, params: unknown): void {
    this.#told.push([name, params]);
  }

  /** Fires `input.event` when it is due. Returns how to disarm it. */
  arm(input: DeadlineInput, fire: (event: EventObject) => void): () => void {
    const { clock, scheduler } = this.environment;
    this.armed.add(input);
    const cancel = scheduler.schedule(() => {
      this.armed.delete(input);
      this.fired += 1;
      fire({ type: input.event, dueAt: input.dueAt, at: clock.now() } as EventObject);
    }, input.dueAt - clock.now());
    return () => {
      cancel();
      this.armed.delete(input);
    };
  }
}

/** The machine with its effects and activities going to the stage of its actor; made once. */
function staged(machine: AnyStateMachine): AnyStateMachine {
  const known = provided.get(machine);
  if (known !== undefined) return known;
  const { actions, actors } = machine.implementations;
  const effects = Object.keys(actions).filter((name) => isEffect(actions[name]));
  const made = machine.provide({
    actions: Object.fromEntries(
      effects.map((name) => [
        name,
        ({ system }: { system: object }, params: unknown) => stages.get(system)?.tell(name, params),
      ]),
    ),
    actors: Object.fromEntries(
      Object.keys(actors).map((name) => [
        name,
        fromCallback<EventObject, DeadlineInput>(({ input, sendBack, system }) => {
          const stage = stages.get(system);
          if (name === 'deadline') return stage?.arm(input, sendBack);
          stage?.tell(name, input);
          return undefined;
        }),
      ]),
    ),
  } as never);
  provided.set(machine, made);
  return made;
}
