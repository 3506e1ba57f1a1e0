// The tool calls that this client executes: `client.handle(name, handler)`.
//
//   offered ─claim▶ ours ─handler▶ result ─▶ session          not in the server's list any more: the signal aborts
//
// Owns:     the handlers by tool name, and the calls that this client is executing.
// Does not: decide which of several clients has a call (the session does) or manage the connection (session-client.ts).
//
// Invariants
//   CALL-HANDLERS-1. A handler runs only while this client has the call, and only once for each claim.
//   CALL-HANDLERS-2. After a lost connection, the client claims its running calls again before another client can claim
//       them.
//   CALL-HANDLERS-3. A call whose handler throws, or whose result is refused, ends with an error.

import { MAX_RESULT_BYTES } from '../actors/contracts/session-views.ts';
import { CancelledError, ConfigurationError, codeOf, messageOf } from '../values/errors.ts';
import { shown } from '../values/plain-checks.ts';
import type { ClientStatus } from './line.ts';
import {
  MAX_TEXT_CHARS,
  type CallCommand,
  type OfferedCall,
  type ServerFrame,
} from './protocol.ts';
import type { Watchable } from './watchable.ts';

/** Executes one call. The handler may declare a narrower type for `input`, which is not checked. */
export type CallHandler = {
  handle(input: unknown, call: { callId: string; signal: AbortSignal }): unknown;
}['handle'];

/** The part of the client's connection that the handlers use. */
interface CallLine {
  readonly frames: Watchable<ServerFrame>;
  readonly status: Watchable<ClientStatus>;
  command(command: CallCommand): Promise<unknown>;
  threw(error: unknown): void;
}

interface Running {
  readonly controller: AbortController;
  isClaiming: boolean;
}

/** Returns the function `handle`, which registers a tool's handler and returns a function that removes the handler. */
export function callHandlers({ frames, status, command, threw }: CallLine) {
  const handlers = new Map<string, CallHandler>();
  const runningCalls = new Map<string, Running>();
  let offered: readonly OfferedCall[] = [];

  async function claim(callId: string, running: Running): Promise<boolean> {
    running.isClaiming = true;
    try {
      return (await command({ type: 'call.claim', callId })) === true;
    } finally {
      running.isClaiming = false;
    }
  }

  async function answer(callId: string, result: Result): Promise<boolean> {
    const send = async (told: Result): Promise<boolean> =>
      (await command({ type: 'call.result', callId, ...told })) === true;
    try {
      return await send(result);
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'INVALID_RESULT' && code !== 'RESULT_TOO_LARGE') throw error;
      threw(error);
      return send({ error: messageOf(error).slice(0, MAX_TEXT_CHARS) });
    }
  }

  async function run({ callId, input }: OfferedCall, handler: CallHandler): Promise<void> {
    const running = { controller: new AbortController(), isClaiming: true };
    runningCalls.set(callId, running);
    const { signal } = running.controller;
    try {
      if (!(await claim(callId, running)) || signal.aborted) return;
      const result = await resultOf(() => handler(input, { callId, signal }));
      if (signal.aborted || (await answer(callId, result))) return;
      // The call may have become available to other clients while the connection was lost.
      if (await claim(callId, running)) await answer(callId, result);
    } catch (error) {
      // A closed client reports no errors.
      if (codeOf(error) !== 'CLIENT_CLOSED') threw(error);
    } finally {
      runningCalls.delete(callId);
    }
  }

  /** CALL-HANDLERS-2 */
  async function claimAgain({ callId, own }: OfferedCall, running: Running): Promise<void> {
    if (own || running.isClaiming) return;
    const isOurs = await claim(callId, running).catch(() => true);
    if (!isOurs) running.controller.abort(new CancelledError('another client has the call'));
  }

  function update(calls: readonly OfferedCall[]): void {
    offered = calls;
    for (const [id, { controller }] of runningCalls)
      if (!calls.some(({ callId }) => callId === id))
        controller.abort(new CancelledError('the call is over, or another client has it'));
    for (const call of calls) {
      const running = runningCalls.get(call.callId);
      const handler = handlers.get(call.name);
      if (running) void claimAgain(call, running);
      else if (handler && !call.own) void run(call, handler);
    }
  }

  frames.subscribe((frame) => {
    if (frame.type === 'calls') update(frame.calls);
  });
  status.subscribe(({ state }) => {
    if (state === 'closed') update([]);
  });
  return (name: string, handler: CallHandler): (() => void) => {
    const problem =
      typeof name !== 'string' || typeof handler !== 'function'
        ? `expected the name of a tool and a function, got ${shown(name)} and ${shown(handler)}`
        : handlers.has(name)
          ? `"${name}" has a handler`
          : null;
    if (problem !== null)
      throw new ConfigurationError('INVALID_ARGUMENT', `client.handle(name, handler): ${problem}`);
    handlers.set(name, handler);
    update(offered);
    return () => {
      if (handlers.get(name) === handler) handlers.delete(name);
    };
  };
}

type Result = { readonly output: unknown } | { readonly error: string };

/** CALL-HANDLERS-3 */
async function resultOf(handle: () => unknown): Promise<Result> {
  try {
    const output = (await handle()) ?? null;
    const bytes = new TextEncoder().encode(JSON.stringify(output) ?? '').length;
    if (bytes > 0 && bytes <= MAX_RESULT_BYTES) return { output };
    return { error: `The result is no JSON of at most ${MAX_RESULT_BYTES} bytes` };
  } catch (error) {
    return { error: messageOf(error).slice(0, MAX_TEXT_CHARS) || 'It failed' };
  }
}
