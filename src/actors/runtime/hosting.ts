// Makes a machine post instead of act. Its effects (named actions) and activities
// (invoked actors) are provided once for all its instances; each instance finds the
// postbox of its own unit. So nothing that a machine says happens by itself: the
// router releases it, after the entry that caused it is committed.

import {
  createActor,
  fromCallback,
  type Actor,
  type AnyActorRef,
  type AnyStateMachine,
  type EventObject,
  type InputFrom,
  type InspectionEvent,
  type Observer,
  type Snapshot,
} from 'xstate';
import { isEffect } from '../../machines/effect.ts';

/** What a machine wants to happen, as data. */
export type Effect =
  /** A named action. */
  | { readonly kind: 'do'; readonly name: string; readonly params: unknown }
  /** An activity begins; it lasts until it is stopped. */
  | {
      readonly kind: 'start';
      readonly name: string;
      readonly id: string;
      readonly input: unknown;
    }
  | { readonly kind: 'stop'; readonly name: string; readonly id: string };

/** Where an actor's effects go. */
export interface Postbox {
  post(effect: Effect): void;
}

export interface HostOptions {
  /** Names the actor in the inspector. */
  readonly id: string;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** Continues from here instead of from the start. */
  readonly snapshot?: Snapshot<unknown>;
}

/** The system of an actor is the one thing that the actor, its actions and its activities share. */
const postboxes = new WeakMap<object, Postbox>();
const hosted = new WeakMap<AnyStateMachine, AnyStateMachine>();

// A root without an error observer raises its error in the process; the unit looks
// at the snapshot after each event instead. One observer serves all actors.
const observer: Observer<unknown> = { error() {} };

/** Starts a machine whose effects go to `postbox`. */
export function startHosted<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M> | undefined,
  postbox: Postbox,
  options: HostOptions,
): Actor<M> {
  const actor = createActor(postingMachine(machine), {
    id: options.id,
    ...(input === undefined ? {} : { input }),
    ...(options.inspect ? { inspect: options.inspect } : {}),
    ...(options.snapshot ? { snapshot: options.snapshot } : {}),
  } as never) as unknown as Actor<M>;
  postboxes.set((actor as AnyActorRef).system, postbox);
  (actor as AnyActorRef).subscribe(observer as never);
  actor.start();
  return actor;
}

function postingMachine(machine: AnyStateMachine): AnyStateMachine {
  const known = hosted.get(machine);
  if (known) return known;
  const actions: Record<string, unknown> = {};
  for (const [name, action] of Object.entries(machine.implementations.actions))
    if (isEffect(action))
      actions[name] = ({ system }: { system: object }, params: unknown) =>
        postboxes.get(system)?.post({ kind: 'do', name, params });
  const actors: Record<string, unknown> = {};
  for (const name of Object.keys(machine.implementations.actors))
    actors[name] = fromCallback<EventObject, unknown>(({ input, self, system }) => {
      const postbox = postboxes.get(system);
      const { id } = self;
      postbox?.post({ kind: 'start', name, id, input });
      return () => postbox?.post({ kind: 'stop', name, id });
    });
  const posting = machine.provide({ actions, actors } as never);
  hosted.set(machine, posting);
  return posting;
}
