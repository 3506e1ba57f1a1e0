// The tool calls that the user's clients execute: passes each call to the client that claims it, and passes the
// client's result to the tool.
//
//   tool ─run─▶ client.called ─▶ every client of the user ─claim─▶ one of them ─answer─▶ the tool
//
// Owns:     the tools that wait for a result in this process, and the validation of results.
// Does not: decide which client is assigned a call (the call's machine does), or manage connections
//           (serve/session-hub.ts).
//
// Invariants
//   CLIENT-CALLS-1. A tool receives the result of its call once, even in a later process, and only after the result is
//       in the journal.
//   CLIENT-CALLS-2. A result that is too large, or that does not match the tool's schema, is rejected and leaves the
//       call open.
//   CLIENT-CALLS-3. A call can be claimed only by a client of the user on whose behalf it is made.

import { z } from 'zod';
import type { ClientCallSnapshot } from '../../../machines/index.ts';
import { check } from '../../../values/checks.ts';
import { clip } from '../../../values/clip.ts';
import {
  CancelledError,
  CapacityError,
  ConfigurationError,
  messageOf,
  OffstageError,
  ProviderError,
  TimeoutError,
} from '../../../values/errors.ts';
import { asJson, isLongerThan } from '../../../values/json.ts';
import { raceTime } from '../../../values/race-abort.ts';
import { checkedBy, type VouchedFor } from '../../contracts/identity.ts';
import type { ClientCallRecord, ClientCallRequest } from '../../contracts/records.ts';
import { MAX_RESULT_BYTES, type ClientCallView } from '../../contracts/session-views.ts';
import { validateWith } from '../../model/schema.ts';
import { inDoubtMessage } from '../../model/tool-results.ts';
import type { LeadSession } from '../lead/lead-agents.ts';

const MAX_ERROR_CHARS = 1_000;
const CHECK_TIMEOUT_MS = 5_000;

const ids = z.tuple([z.string(), z.string()]);
const results = z.union(
  [z.strictObject({ output: z.unknown() }), z.strictObject({ error: z.string() })],
  'expected { output } or { error }',
);

/** The tool calls that the user's clients execute (`runsAt: 'client'`), for a server that connects the clients. */
export interface CallsOfClients {
  /** Returns the open calls. */
  list(): readonly ClientCallView[];
  /**
   * Assigns a call to a client, identified by a name that the app chooses. `by`: the client's user. Resolves with true
   * if the call was assigned to the client.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   * @throws {CapacityError} `MAILBOX_FULL` (rejects).
   */
  claim(id: string, client: string, options?: VouchedFor): Promise<boolean>;
  /**
   * Accepts the result from the client that has claimed the call, or the reason why that client could not execute it.
   * Resolves with false if another client has claimed the call or the call is over.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `INVALID_RESULT` for a result that does not fit the tool's `resultSchema`: the
   *   call stays open (rejects).
   * @throws {CapacityError} `RESULT_TOO_LARGE` above 32,768 bytes of JSON: the call stays open; `MAILBOX_FULL` (rejects).
   */
  answer(
    id: string,
    client: string,
    result: { readonly output: unknown } | { readonly error: string },
  ): Promise<boolean>;
  /**
   * Reports that the client has disconnected. Other clients can then claim its calls, either immediately or if the
   * client does not return in time.
   */
  left(client: string): void;
}

/** The session's interface to the calls that clients execute. */
export interface ClientCalls extends CallsOfClients {
  /** Resolves with the client's result. If an earlier process started the call, the call continues. */
  run(call: ClientCallRequest): Promise<unknown>;
  /** Closes a call whose result is no longer needed. Returns whether a client may already have executed the call. */
  cancel(id: string): boolean;
  /** Resumes after a restart. No client is connected yet, and calls whose tool is no longer waiting are cancelled. */
  resume(): void;
  /** Reports a changed call to clients. If the call has ended, passes its result to the tool. */
  changed(id: string): void;
}

/** A tool that is waiting for the result of its call. */
interface Caller {
  readonly schema: ClientCallRequest['tool']['schema'];
  resolve(output: unknown): void;
  reject(error: OffstageError): void;
}

export function clientCallsOf(session: LeadSession): ClientCalls {
  const callers = new Map<string, Caller>();
  /** Results that arrived after a restart but before their tool ran again. */
  const early = new Map<string, PromiseWithResolvers<void>>();
  const stateOf = (id: string): ClientCallSnapshot | null => session.unit.clientCalls.of(id);
  const openOf = (id: string): ClientCallSnapshot | null => {
    const state = stateOf(id);
    return state?.status === 'active' ? state : null;
  };
  const list = (): readonly ClientCallView[] =>
    [...session.records.clientCalls.values()].flatMap((record) => {
      const state = openOf(record.id);
      return state ? viewOf(record, state) : [];
    });

  /**
   * Releases each call that this client has claimed, even if the claim is still being written. With null, releases every
   * claimed call.
   */
  function release(by: string | null): void {
    for (const { id } of list()) session.receive(`client:${id}`, { type: 'client.left', by });
  }

  function cancel(id: string): boolean {
    callers.delete(id);
    const state = openOf(id);
    if (state) session.receive(`client:${id}`, { type: 'client.cancelled' });
    return state !== null && mayBeDone(state);
  }

  function changed(id: string): void {
    const record = session.records.clientCalls.get(id);
    const state = stateOf(id);
    if (!record || !state) return;
    session.projection.emit({ type: 'client_call.changed', call: viewOf(record, state) });
    if (state.status === 'active') return;
    early.get(id)?.resolve();
    const caller = callers.get(id);
    callers.delete(id);
    if (state.value === 'answered') caller?.resolve(record.output);
    else caller?.reject(errorOf(record, state));
  }

  /** CLIENT-CALLS-2 */
  async function checked(id: string, output: unknown): Promise<unknown> {
    const name = session.records.clientCalls.get(id)?.name ?? '';
    const refuse = (why: string): never => {
      const message = `The result of "${name}" was refused: ${clip(why, MAX_ERROR_CHARS)}`;
      throw new ConfigurationError('INVALID_RESULT', message);
    };
    const given = asJson(output ?? null);
    if (!given.ok) return refuse(given.message);
    if (isLongerThan(given.text, MAX_RESULT_BYTES))
      throw new CapacityError(
        'RESULT_TOO_LARGE',
        `Expected a result of "${name}" of at most ${MAX_RESULT_BYTES} bytes of JSON`,
      );
    if (!callers.has(id)) {
      const waiting = early.get(id) ?? Promise.withResolvers<void>();
      await early.set(id, waiting).get(id)?.promise;
      early.delete(id);
    }
    const schema = callers.get(id)?.schema;
    if (!schema) return given.value;
    const { scheduler } = session.host.environment;
    const late = (): Error => new TimeoutError(`its check took longer than ${CHECK_TIMEOUT_MS} ms`);
    const limit = { timeoutMs: CHECK_TIMEOUT_MS, scheduler, late };
    const fit = await raceTime(() => validateWith(schema, given.value), limit).catch(
      (error: unknown) => refuse(messageOf(error)),
    );
    if (!fit.ok) return refuse(messageOf(fit.error.cause ?? fit.error));
    const kept = asJson(fit.value ?? null);
    return kept.ok ? kept.value : refuse(kept.message);
  }

  return {
    list,
    cancel,
    changed,
    run({ id, callId, subagentId, name, input, user, tool }) {
      const { schema, timeoutMs, absent, idempotent } = tool;
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      callers.set(id, { schema, resolve, reject });
      early.get(id)?.resolve();
      if (session.records.clientCalls.has(id)) changed(id);
      else
        session.receive('clients', {
          type: 'client.called',
          id,
          callId,
          subagentId,
          name,
          input,
          user,
          timeoutMs,
          absent,
          idempotent,
        });
      return promise;
    },
    async claim(id, client, options = {}) {
      check('clientCalls.claim(id, client)', ids, [id, client], 'INVALID_ARGUMENT');
      const user = checkedBy('clientCalls.claim(options)', options) ?? session.user;
      const record = session.records.clientCalls.get(id);
      // CLIENT-CALLS-3
      if (!record || (record.user !== null && record.user !== user)) return false;
      const { unit } = session.unit;
      if (openOf(id)?.value !== 'claimed') {
        unit.checkRoom();
        session.receive(`client:${id}`, { type: 'client.claimed', by: client });
        await unit.whenHandled();
      }
      const state = openOf(id);
      return state?.value === 'claimed' && state.context.by === client;
    },
    async answer(id, client, given) {
      check('clientCalls.answer(id, client)', ids, [id, client], 'INVALID_ARGUMENT');
      const where = 'clientCalls.answer(id, client, result)';
      const result = check(where, results, given, 'INVALID_ARGUMENT');
      if (openOf(id)?.context.by === client) {
        const failed = 'error' in result;
        const output = failed
          ? clip(result.error, MAX_ERROR_CHARS)
          : await checked(id, result.output);
        const { unit } = session.unit;
        unit.checkRoom();
        const to = `client:${id}` as const;
        session.receive(to, { type: 'client.answered', by: client, output, failed });
        await unit.whenHandled();
      }
      const state = stateOf(id);
      const isAnswered = state?.value === 'answered' || state?.value === 'failed';
      return isAnswered && state.context.by === client;
    },
    left(client) {
      check('clientCalls.left(client)', z.string(), client, 'INVALID_ARGUMENT');
      release(client);
    },
    resume() {
      release(null);
      for (const { id, subagentId } of list()) {
        const callId = openOf(id)?.context.callId ?? '';
        const subagent = session.tree.get(subagentId ?? '');
        const isWanted =
          subagentId === null
            ? session.unit.runOf(callId) !== null
            : subagent?.state === 'waiting_for_children' && subagent.log.call(callId) !== undefined;
        if (!isWanted) cancel(id);
      }
    },
  };
}

function mayBeDone({ context: { by, idempotent } }: ClientCallSnapshot): boolean {
  return by !== null && !idempotent;
}

function viewOf({ id, name, input, user }: ClientCallRecord, state: ClientCallSnapshot) {
  const { by, endsAt: dueAt, subagentId } = state.context;
  return { id, name, input, user, subagentId, state: state.value, by, dueAt };
}

/** Returns the error that a tool throws when its call has ended without a result. */
function errorOf({ name, output }: ClientCallRecord, state: ClientCallSnapshot): OffstageError {
  const at = 'The page of the user';
  const { value } = state;
  if (value === 'failed')
    return new ProviderError('CLIENT_FAILED', `${at} could not do it: ${JSON.stringify(output)}`);
  if (value === 'absent') {
    const message = `No page of the user is open that can do "${name}"`;
    return new ProviderError('CLIENT_ABSENT', message, { retryable: true });
  }
  if (value === 'cancelled') return new CancelledError('the call was cancelled');
  if (!mayBeDone(state)) return new TimeoutError(`No page of the user has done "${name}" in time`);
  const why = `${at} that ran "${name}" has not answered`;
  return new OffstageError('NEEDS_RECONCILE', inDoubtMessage(name, why));
}
