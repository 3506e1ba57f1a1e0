// One hosted machine.

import type { AnyStateMachine, EventObject, InputFrom, Snapshot, SnapshotFrom } from 'xstate';
import { Draft } from '../../src/actors/runtime/draft.ts';
import { Population, type Effect, type Observers } from '../../src/actors/runtime/hosting.ts';

const unseen: Observers = { isWatched: false, began() {}, moved() {}, ended() {} };

/** Hosts a machine that starts with an input or continues from a snapshot. */
export function hosted<M extends AnyStateMachine>(
  machine: M,
  from: { readonly input?: InputFrom<M> } | { readonly snapshot: Snapshot<unknown> },
  post: (effect: Effect) => unknown = () => {},
  actors = unseen,
) {
  const unit = {
    id: 'a',
    draft: new Draft(),
    post: (_: string, effect: Effect) => void post(effect),
  };
  const one = new Population(machine, '', unit, { actors }, 'a');
  if ('snapshot' in from) one.restore([{ id: '', state: from.snapshot }]);
  else one.create('', from.input);
  return {
    get snapshot(): SnapshotFrom<M> {
      return one.snapshot;
    },
    send: (event: EventObject): void => one.apply('', event),
    accepts: (event: EventObject): boolean => one.accepts('', event),
  };
}
