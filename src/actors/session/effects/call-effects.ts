// Carries out the effects of the lead agent's tool calls: checks, runs, delegates and answers them. Each call
// has a life of its own.
//
// Owns:     the running inline tools.
// Does not: decide what a call does next (its machine does).

import type { JSONValue } from 'ai';
import { CancelledError, isError, messageOf, TimeoutError } from '../../../values/errors.ts';
import type { CallAnswer, Failure } from '../../../machines/index.ts';
import { DEFAULT_MAX_OUTPUT_BYTES, keepOutput } from '../../model/tool-output.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import { raceAbort, raceTime } from '../../runtime/race-abort.ts';
import { callSafely } from '../../runtime/host.ts';
import { outcomeOf } from '../../subagent/outcome-of.ts';
import { inDoubtMessage } from '../../subagent/run-calls.ts';
import { SubagentLog } from '../../subagent/subagent-log.ts';
import { tellDoubt } from './call-in-doubt.ts';
import { DuplicateCalls, type HeldBack } from '../lead/duplicate-calls.ts';
import { intoConversation } from '../state/live-conversation.ts';
import { DEFAULT_PENDING_MESSAGE } from '../../conversation/prompts.ts';
import type { LeadTool } from '../lead/lead-tools.ts';
import type { CallRecord } from '../../contracts/records.ts';
import { DEFAULT_TOOL_TIMEOUT_MS } from '../unit/session-unit.ts';
import { keyOf, toolContext } from './tool-context.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';
import type { EffectsSession } from './effects-session.ts';

/** The result of an inline tool. */
interface Returned {
  readonly output: JSONValue;
  readonly failed: boolean;
}

/** Answers that report an error to the model. */
const FAILURES: ReadonlySet<CallAnswer> = new Set(['failed', 'invalid', 'timed_out', 'cancelled']);

interface Answered {
  readonly status?: CallAnswer;
  readonly isOver?: boolean;
  readonly isRecorded?: boolean;
}

export class CallEffects {
  readonly #session: EffectsSession;
  readonly #duplicates: DuplicateCalls;
  readonly #executing = new Map<string, AbortController>();

  constructor(session: EffectsSession) {
    this.#session = session;
    this.#duplicates = new DuplicateCalls((id) => session.delegation.get(id));
  }

  /** Aborts all running tools with this reason: the session has ended, or continues elsewhere. */
  stopAll(reason: Error): void {
    for (const controller of this.#executing.values()) controller.abort(reason);
    this.#executing.clear();
  }

  /** Continues, after a crash, calls that were being checked, run or delegated; see `recovery.ts`. */
  resume(): void {
    const { records, unit, delegation } = this.#session;
    const workedOn = delegation.liveCalls;
    for (const callId of unit.calls.ids) {
      const state = unit.calls.stateOf(callId);
      const call = records.calls.get(callId);
      if (!state || state.done) {
        if (call && !call.isAnswered) this.#answerAgain(call);
        unit.calls.forget(callId);
      } else if (state.value === 'received') void this.validate(callId);
      else if (state.value === 'executing') this.#goOn(callId);
      else if (state.value === 'acknowledged') this.delegate(callId);
      else if (state.value === 'delegated') {
        const subagent = workedOn.get(callId);
        if (subagent) this.#duplicates.goesOn(subagent);
        else this.#lost(callId);
      }
    }
  }

  /** Answers a call that was over, if the journal does not say that the model was told. */
  #answerAgain({ callId, name, output, failed }: CallRecord): void {
    const status = failed === true ? 'failed' : 'result';
    if (output !== null) this.answered(callId, name, output, { status, isOver: true });
  }

  /** Continues a call: it is run again, with the same key, only if its tool permits that (P6). */
  #goOn(callId: string): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    if (!call) return;
    const { name, agentName, input } = call;
    const definition = session.leads.toolsOf(agentName).get(name)?.definition;
    if (definition?.idempotent === true) {
      this.execute(callId);
      return;
    }
    const ofTheLead = { subagentId: null, subagentName: null };
    const idempotencyKey = keyOf(session.id, callId);
    tellDoubt(session, { ...ofTheLead, callId, toolName: name, input, idempotencyKey });
    session.receive(`call:${callId}`, {
      type: 'call.executed',
      output: { error: inDoubtMessage(name), code: 'NEEDS_RECONCILE' },
      failed: true,
    });
  }

  /** Ends a call whose subagent is not in the journal: no result will come. */
  #lost(callId: string): void {
    const error = {
      code: 'NOT_RECOVERABLE',
      message: 'The subagent that worked on it is not in the journal',
      retryable: true,
    };
    const outcome = outcomeOf({ status: 'lost', steps: 0, error }, new SubagentLog());
    this.#session.receive(`call:${callId}`, { type: 'subagent.ended', outcome });
  }

  async validate(callId: string): Promise<void> {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    if (!call) return;
    const tools = session.leads.toolsOf(call.agentName);
    const tool = tools.get(call.name);
    const invalid = (message: string): void =>
      session.receive(`call:${callId}`, {
        type: 'call.invalid',
        error: { code: 'INVALID_CALL', message, retryable: false },
      });
    if (!tool) {
      const known = [...tools.keys()].join(', ') || 'none';
      invalid(`Unknown tool: ${call.name}. Available tools: ${known}`);
      return;
    }
    const checked = await this.#checked(tool, call);
    // It may have been cancelled meanwhile, or the session may have ended.
    if (session.records.calls.get(callId) !== call || session.unit.unit.disposed) return;
    if (!checked.ok) {
      invalid(checked.message);
      return;
    }
    const { execution = 'inline', delivery = session.configs[call.name]?.delivery } =
      tool.definition;
    const { pendingMessage = session.acknowledgesCalls ? DEFAULT_PENDING_MESSAGE : undefined } =
      tool.definition;
    session.projection.emit({ type: 'tool.called', callId, name: call.name, input: checked.value });
    callSafely(session.host, 'hook onToolCall', () =>
      session.hooks.onToolCall?.({ callId, name: call.name, input: checked.value }),
    );
    session.receive(`call:${callId}`, {
      type: 'call.validated',
      execution,
      acknowledge: pendingMessage !== undefined,
      message: pendingMessage,
      delivery: delivery ?? 'when_idle',
      input: checked.value,
    });
  }

  /**
   * Validates the arguments and checks that the inputs that they name can be read; the error lets the model
   * call again at once.
   */
  async #checked(tool: LeadTool, call: CallRecord): ReturnType<LeadTool['validate']> {
    const session = this.#session;
    const checked = await this.#fitting(tool, call.arguments);
    const config = session.configs[call.name];
    if (!checked.ok || tool.definition.execution !== 'background' || config?.lineage !== true)
      return checked;
    const args = checked.value as Readonly<Record<string, unknown>>;
    const message = await session.ofCalls.outcomes?.missingInputs(args, {
      sessionId: session.id,
      path: [],
    });
    return typeof message === 'string' ? { ok: false, message } : checked;
  }

  /** Validates with the app's schema, which may be asynchronous: the time limit is that of the tool. */
  #fitting(tool: LeadTool, json: string): ReturnType<LeadTool['validate']> {
    const { name, timeout: timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = tool.definition;
    const { scheduler } = this.#session.host.environment;
    const late = (): Error =>
      new TimeoutError(`Validation failed: it took longer than ${timeoutMs} ms`);
    return raceTime(() => tool.validate(json), { timeoutMs, scheduler, late }).catch(
      (error: unknown) => {
        this.#session.host.report(error, `parameters of tool "${name}"`);
        return { ok: false, message: messageOf(error) };
      },
    );
  }

  execute(callId: string): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    const execute =
      call && session.leads.toolsOf(call.agentName).get(call.name)?.definition.execute;
    if (!call || !execute) return;
    const controller = new AbortController();
    this.#executing.set(callId, controller);
    const { signal } = controller;
    const settle = ({ output, failed }: Returned): void => {
      if (signal.aborted) return;
      // It has ended by itself: there is nothing to abort any more.
      this.#executing.delete(callId);
      const event = { type: 'call.executed', output } as const;
      session.receive(`call:${callId}`, failed ? { ...event, failed } : event);
    };
    session.host.environment.scheduler.yieldThen(() => {
      if (signal.aborted) return;
      const run = async (): Promise<Returned> => {
        const output = await execute(
          call.input as never,
          toolContext(session, {
            callId,
            agentName: call.agentName,
            abortSignal: signal,
            requester: call.requestedBy ?? null,
            approver: null,
          }),
        );
        return this.#kept(call, output, signal);
      };
      raceAbort(run(), signal).then(settle, (error: unknown) => {
        if (!signal.aborted)
          callSafely(session.host, 'hook onToolError', () =>
            session.hooks.onToolError?.({ callId, name: call.name, error }),
          );
        settle({ output: { error: messageOf(error) }, failed: true });
      });
    });
  }

  /** Moves an output that is too large for the model to working memory, where there is one. */
  async #kept(
    { callId, name }: CallRecord,
    output: unknown,
    signal: AbortSignal,
  ): Promise<Returned> {
    const { id: sessionId, ofCalls } = this.#session;
    const { outcomes } = ofCalls;
    if (!outcomes?.hasMemory) return answerOf(name, output, DEFAULT_MAX_OUTPUT_BYTES);
    const whole = answerOf(name, output, Number.POSITIVE_INFINITY);
    const { output: value, failed } = whole;
    const returned = { callId, toolName: name, part: 'output' as const, value, signal };
    return {
      output: await outcomes.keepLarge({ sessionId, path: [] }, ofCalls.tools(), returned),
      failed,
    };
  }

  /** Aborts a call that has left `executing`; the signal of the tool gives the reason. */
  stop(callId: string): void {
    const controller = this.#executing.get(callId);
    if (!controller) return;
    this.#executing.delete(callId);
    const { unit, records } = this.#session;
    const { name = '', cancelReason = 'the call was cancelled' } = records.calls.get(callId) ?? {};
    // It did not end by itself: it was cancelled, or its time was up.
    const isCancelled = unit.calls.stateOf(callId)?.value !== 'answered';
    controller.abort(
      isCancelled ? new CancelledError(cancelReason) : new TimeoutError(`Tool "${name}" timed out`),
    );
  }

  answer(callId: string, answer: CallAnswer): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    if (!call) return;
    const { name, output } = call;
    // The model does not respond to the answer of a cancelled call.
    session.lead.answerTool(callId, output, answer !== 'cancelled');
    const isOver = session.unit.calls.stateOf(callId)?.done === true;
    // The record of a cancelled call may be gone before the event is applied.
    const isRecorded = isOver && answer !== 'cancelled';
    this.answered(callId, name, output, { status: answer, isOver, isRecorded });
    if (isOver) session.unit.calls.forget(callId);
  }

  /** Reports that the model has its answer to this call; `isRecorded`: the journal has it with the call. */
  answered(
    callId: string,
    name: string,
    output: unknown,
    { status = 'result', isOver = false, isRecorded = false }: Answered = {},
  ): void {
    const { projection, host, hooks } = this.#session;
    const answeredAt = host.environment.clock.now();
    const answer = { type: 'call.answered', callId, answeredAt, isOver } as const;
    const told = FAILURES.has(status) ? { ...answer, failed: true } : answer;
    intoConversation(this.#session, isRecorded ? told : { ...told, output });
    const event = { callId, name, output, status };
    projection.emit({ type: 'tool.answered', callId, name, output, status });
    callSafely(host, 'hook onToolResult', () => hooks.onToolResult?.(event));
  }

  delegate(callId: string): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    const config = call && session.configs[call.name];
    // The outbox had no room to promise a result: the call was rejected in the same step.
    if (!config || session.unit.calls.stateOf(callId)?.value !== 'acknowledged') return;
    const definition = checkSubagentConfig(config);
    const task = {
      toolName: call.name,
      args: call.input as Readonly<Record<string, unknown>>,
      description:
        session.leads.toolsOf(call.agentName).get(call.name)?.definition.description ?? call.name,
    };
    const heldBack = this.#duplicates.check(definition, task, session.records.utteranceId);
    if (heldBack) {
      this.#refuse(callId, heldBack);
      return;
    }
    const delegated = session.delegation.spawnFor(session.ofCalls, {
      config,
      task,
      caller: THE_LEAD,
      callId,
      idempotencyKey: keyOf(session.id, callId),
    });
    if (delegated.status === 'accepted') {
      this.#duplicates.begun(definition, task, delegated.subagentId);
      session.receive(`call:${callId}`, {
        type: 'subagent.accepted',
        subagentId: delegated.subagentId,
      });
      if (call.output === null) session.lead.deferTool(callId);
      session.projection.emit({
        type: 'subagent.delegated',
        callId,
        agentName: call.agentName,
        subagentId: delegated.subagentId,
        subagentName: definition.name,
        lifetime: definition.lifetime,
      });
      return;
    }
    this.#refuse(callId, delegated);
  }

  #refuse(callId: string, { error, output }: Pick<HeldBack, 'output'> & { error: Failure }): void {
    this.#session.receive(`call:${callId}`, {
      type: 'subagent.rejected',
      error,
      output,
      reserved: true,
    });
  }
}

/**
 * Converts the return value of an inline tool for the model, the journal and the wire: JSON, and not too
 * large.
 */
function answerOf(toolName: string, returned: unknown, maxBytes: number): Returned {
  if (isError(returned)) return { output: { error: messageOf(returned) }, failed: true };
  const kept = keepOutput(returned ?? null, maxBytes);
  if (kept.ok) return { output: kept.value, failed: false };
  return { output: { error: `Tool "${toolName}" ${kept.message}` }, failed: true };
}
