// Some real machines, hosted by hand in the same way as a session's. Each is the root of its own system and is named by
// its path. Their effects are listed but not executed.

import { createActor, fromCallback, type AnyStateMachine, type InspectionEvent } from 'xstate';
import {
  interactionMachine,
  questionMachine,
  sessionMachine,
  subagentMachine,
  type Stamped,
} from '../../../../src/machines/index.ts';

export const SECRET = 'my bank account is at the corner of Elm Street';

type Inspect = (event: InspectionEvent) => void;

/** Returns the machine with activities that never complete. */
export function idle<M extends AnyStateMachine>(machine: M): M {
  const names = Object.keys(machine.implementations.actors);
  const actors = Object.fromEntries(names.map((name) => [name, fromCallback(() => {})]));
  return machine.provide({ actors } as never) as M;
}

const hostedQuestion = idle(questionMachine);
const hostedSubagent = idle(subagentMachine);
const hostedSession = idle(sessionMachine);

export function startSession(inspect: Inspect, id = 'ses_1') {
  const input = { maxReconnects: 1, settleTimeoutMs: 0, closeGraceMs: 0, detachGraceMs: null };
  return createActor(hostedSession, { id, inspect, input }).start();
}

export function startInteraction(inspect: Inspect, sessionId = 'ses_1') {
  return createActor(interactionMachine, { id: `${sessionId}/interaction`, inspect }).start();
}

export function startSubagent(inspect: Inspect, id = 'sub_1', sessionId = 'ses_1') {
  const input = { id, at: 0, maxSteps: 5, timeoutMs: 1000, maxInputRetries: 3 };
  return createActor(hostedSubagent, { id: `${sessionId}/${id}`, inspect, input }).start();
}

export function startQuestion(
  inspect: Inspect,
  requestId: string,
  snapshot?: unknown,
  sessionId = 'ses_1',
) {
  return createActor(hostedQuestion, {
    id: `${sessionId}/question:${requestId}`,
    inspect,
    ...(snapshot ? { snapshot: snapshot as never } : {}),
    input: { requestId, timeoutMs: 1000 },
  }).start();
}

/** Adds the fields that every event has, and fields that the machine does not read. */
export function stamped<E extends { readonly type: string }>(event: E): E & Stamped {
  return { ...event, at: 1 };
}
