// Makes XState's pure step inert and cheap. The machine's invoked actors do nothing, and all steps share one scope.
// Both rely on undocumented parts of XState. A test compares the results with the exported `transition()` in the oldest
// and the newest supported version.

import {
  createActor,
  fromCallback,
  type AnyActorRef,
  type AnyStateMachine,
  type AnyStateNode,
} from 'xstate';
import { ConfigurationError } from '../../values/errors.ts';
import type { ListedAction } from './effects.ts';

/** Replaces every invoked actor. */
const idle = fromCallback(() => {});

/** A loop of eventless transitions must end with an error instead of blocking the checker. */
const maxMicrosteps = 1000;

/** The members of the running actor that `machine.transition` reads. */
export type Scope = Parameters<AnyStateMachine['transition']>[2] & {
  actionExecutor: (action: ListedAction) => void;
};

/** Placeholders for the actors of a system, which `system.get` returns. They are never started. */
export function placeholders(ids: readonly string[]): ReadonlyMap<string, AnyActorRef> {
  return new Map(ids.map((id) => [id, createActor(idle, { id })]));
}

/** Returns the machine with every invoked actor replaced and the number of microsteps limited. */
export function inertMachine(id: string, machine: AnyStateMachine): AnyStateMachine {
  if (typeof machine?.provide !== 'function' || machine.root === undefined) {
    throw new ConfigurationError(
      'NOT_A_MACHINE',
      `Expected the machine of "${id}" to come from setup().createMachine() or createMachine(), got ${typeof machine}`,
    );
  }
  const names = new Set(Object.keys(machine.implementations.actors));
  const nodes: AnyStateNode[] = [machine.root];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    for (const { src } of node.invoke) if (typeof src === 'string') names.add(src);
    nodes.push(...Object.values(node.states));
  }
  const inert = machine.provide({
    actors: Object.fromEntries([...names].map((name) => [name, idle])),
  });
  const { maxIterations = Infinity } = inert.options;
  inert.options = { ...inert.options, maxIterations: Math.min(maxIterations, maxMicrosteps) };
  return inert;
}

/** Returns the actor that runs the machine. Calls on it have no effect. */
export function inertScope(id: string, peers: ReadonlyMap<string, AnyActorRef>): Scope {
  const self = createActor(idle, { id });
  const system = {
    ...self.system,
    get: (systemId: string) => peers.get(systemId),
    // Each time that a step is computed, it creates the same invoked actor with the same systemId.
    _set: () => {},
    _sendInspectionEvent: () => {},
  };
  // A machine designed as a child may send events to its parent.
  Object.assign(self, { system, _parent: createActor(idle, { id: '#_parent' }) });
  return {
    self,
    id,
    sessionId: self.sessionId,
    system,
    logger: () => {},
    defer: () => {},
    stopChild: () => {},
    emit: () => {},
    actionExecutor: () => {},
  } as unknown as Scope;
}
