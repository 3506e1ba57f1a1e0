// Executes the effects of the lead agent's tool calls: validates, runs, delegates and answers each call independently
// of the others. Also returns the lead agent's inline tools that its spawned subagents receive.
//
// A background call for work that is already running (the model asked again, or a provider delivered the call twice
// with two ids) is handled as the configuration says:
//
// | `duplicates` | the second call                                                        |
// |--------------|------------------------------------------------------------------------|
// | `join`       | starts nothing; the model is told that the result of the first comes   |
// | `reject`     | is refused with DUPLICATE                                              |
// | `replace`    | is executed; the first is cancelled once the second is accepted        |
// | `confirm`    | is executed if the user has spoken since the work was last held back   |
//
// A task that is being stopped does not count as running, so the call starts the work again. If a `running_task` call
// precedes a background call in the same model answer, the background call first waits until that call has its result.
//
// The user may make a request in several utterances ("Write to Anna" … "that I am late, and copy Bob"):
//
//   ONE-REQUEST-1. If the model wrote its reply without having read the user's latest input, a background call in the
//       reply starts nothing. The model then reads the input, and calls again if the user still wants the work.
//   ONE-REQUEST-2. If the agent has `running_task` and a call's arguments extend those of a task for the same request,
//       the call starts nothing until the user speaks again. The model passes the additions to that task instead. A
//       request remains open until the lead agent's reply is complete, and for at least `CONTINUES_MS` after its call.
//
// An inline tool that takes too long is detached: it continues in the background, and another call to the tool with the
// same arguments joins it. A tool that only waits for subagents stops instead, because the subagents' results arrive as
// deliveries.
//
// Owns:     the running inline tools, the map from work to subagents, and the calls that wait for the user's
//           confirmation.
// Does not: decide a call's next state (its machine does), detect calls that request the same work with different
//           arguments, or decide which tools a subagent receives (subagents/grants.ts).

import { callKey } from '../../../values/json.ts';
import type { JSONValue } from 'ai';
import {
  CancelledError,
  codeOf,
  isError,
  messageOf,
  TimeoutError,
} from '../../../values/errors.ts';
import { forgetOldest } from '../../../values/forget-oldest.ts';
import { shortHashOf } from '../../../values/storable.ts';
import type { CallAnswer, Failure } from '../../../machines/index.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import { raceAbort, raceTime } from '../../../values/race-abort.ts';
import { callSafely, inSpanOf } from '../../runtime/host.ts';
import { inDoubtMessage } from '../../model/tool-results.ts';
import { outcomeOf } from '../../subagent/outcome-of.ts';
import { SubagentLog } from '../../subagent/subagent-log.ts';
import { intoConversation } from '../state/live-conversation.ts';
import { DEFAULT_PENDING_MESSAGE, DETACHED_MESSAGE } from '../../conversation/prompts.ts';
import { callerOf } from '../../model/caller.ts';
import { delegates, SOURCE_TOOL } from '../../model/tool-flags.ts';
import type { SubagentDefinition } from '../../contracts/config.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';
import type { DoubtfulCall } from '../../contracts/session-views.ts';
import type { ParentTool } from '../../subagents/toolsets/parent-toolset.ts';
import type { SubagentTask } from '../../contracts/task.ts';
import type { Subagent } from '../../subagent/subagent.ts';
import type { LeadTool } from '../lead/lead-tools.ts';
import { needsNoReply } from '../lead/settle-tool.ts';
import {
  begunBefore,
  indexOfCall,
  isStop,
  mayGoOn,
  wordsForLead,
  WORDS_LIMIT_MS,
} from '../lead/work.ts';
import type { CallRecord, ClientTool } from '../../contracts/records.ts';
import { DEFAULT_TOOL_TIMEOUT_MS } from '../unit/session-unit.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';
import type { EffectsSession } from './effects-session.ts';
import { DEFAULT_MAX_OUTPUT_BYTES, keepOutput } from '../../model/tool-run.ts';

/** The result of an inline tool. */
interface Returned {
  readonly output: JSONValue;
  readonly failed: boolean;
}

/** The answers with which the model learns of an error. */
const FAILURES: ReadonlySet<CallAnswer> = new Set(['failed', 'invalid', 'timed_out', 'cancelled']);

interface Answered {
  readonly status?: CallAnswer;
  readonly isOver?: boolean;
  readonly isRecorded?: boolean;
  /** Whether the lead agent must respond to the answer. @defaultValue true */
  readonly wantsReply?: boolean;
}

/** The answer that the model receives if the work does not start. */
interface Refusal {
  readonly error: Failure;
  /** The answer to a call that failed through no fault of the model. */
  readonly output?: Readonly<Record<string, string>> | undefined;
}

const NEEDS_RECONCILE = 'NEEDS_RECONCILE';
const AWAIT_SUBAGENT: ParentTool = 'await_subagent';

/**
 * The maximum time for which the user's input waits for an inline tool, in milliseconds. The tool's `detach` option
 * overrides it.
 */
const WORDS_WAIT_MS = 2000;

/**
 * The maximum time for which an inline tool may delay a reply and the deliveries after it, in milliseconds;
 * `detach.afterMs` changes it.
 */
const REPLY_WAITS_MS = 60_000;

/** The maximum number of held-back calls that are remembered. */
const MAX_HELD = 100;

/** When `#works` has more entries than this, those of ended subagents are deleted. */
const MAX_WORKS = 1000;

export class CallEffects {
  readonly #session: EffectsSession;
  readonly #executing = new Map<string, AbortController>();
  /** The subagents that last started each piece of work, by the hash of the tool and its arguments. */
  readonly #works = new Map<string, string>();
  /** Calls that are waiting because an earlier call may be stopping the same work. */
  readonly #waiting = new Set<string>();
  /** The utterance for which a call was last held back, for each piece of work. */
  readonly #heldBack = new Map<string, string | null>();

  constructor(session: EffectsSession) {
    this.#session = session;
  }

  /** Aborts all running tools with this reason, because the session has ended or is being unloaded. */
  stopAll(reason: Error): void {
    for (const controller of this.#executing.values()) controller.abort(reason);
    this.#executing.clear();
  }

  /** After a crash, resumes the calls that were being validated, run or delegated; see `session-life.ts`. */
  resume(): void {
    const { records, unit, tree, projection } = this.#session;
    const workedOn = tree.liveCalls;
    for (const callId of unit.calls.ids) {
      const state = unit.calls.stateOf(callId);
      const call = records.calls.get(callId);
      if (!state || state.done) {
        if (call && !call.isAnswered) this.#answerAgain(call);
        unit.calls.forget(callId);
      } else if (state.value === 'received') void this.validate(callId);
      else if (unit.runOf(callId) !== null) {
        // The journal does not record whether the model knows that the call is detached.
        if (call?.detachedAt !== undefined && !call.isAnswered)
          this.answered(callId, call.name, call.output, { status: 'pending' });
        if (!this.#endWait(callId)) void this.#executeAgain(callId);
      } else if (state.value === 'acknowledged') this.delegate(callId);
      else if (state.value === 'delegated') {
        const subagent = workedOn.get(callId);
        // The lead agent has already read the returned result, so the call is not lost: the scope of its calls
        // continues with the result.
        const isRead = records.returned.has(callId) && projection.subagent(call?.subagentId ?? '');
        if (subagent) this.#works.set(shortHashOf(workOf(subagent.task)), subagent.id);
        else if (!isRead) this.#lost(callId);
      }
    }
  }

  /** Answers a call that has finished, unless the journal shows that the model has received the answer. */
  #answerAgain({ callId, name, output, failed }: CallRecord): void {
    const status = failed === true ? 'failed' : 'result';
    const wantsReply = !needsNoReply(name, output, this.#session.lead);
    if (output !== null) this.answered(callId, name, output, { status, isOver: true, wantsReply });
  }

  /** Resumes a call. It runs again, with the same key, only if its tool permits this (P6) and accepts the input. */
  async #executeAgain(callId: string): Promise<void> {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    if (!call) return;
    const { name, input } = call;
    const tool = this.#toolOf(call);
    const isRepeatable = tool?.client !== null || tool?.definition.idempotent === true;
    const checked = tool && isRepeatable && (await this.#fitting(tool, callId, call.arguments));
    const isOver = !session.records.calls.has(callId) || session.unit.unit.disposed;
    if (isOver || session.unit.runOf(callId) === null) return;
    if (checked && checked.ok && callKey(name, checked.value) === callKey(name, input))
      return this.execute(callId);
    this.#reportInDoubt(call);
    session.receive(`call:${callId}`, {
      type: 'call.executed',
      output: { error: inDoubtMessage(name), code: NEEDS_RECONCILE },
      failed: true,
    });
  }

  /** Fails a call whose subagent is not in the journal, because no result can arrive. */
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
    const tool = this.#toolOf(call);
    const invalid = (message: string): void =>
      session.receive(`call:${callId}`, {
        type: 'call.invalid',
        error: { code: 'INVALID_CALL', message, retryable: false },
      });
    if (!tool) {
      const known = [...session.agents.toolsOf(call.agentName).keys()].join(', ') || 'none';
      return invalid(`Unknown tool: ${call.name}. Available tools: ${known}`);
    }
    const checked = await this.#checked(tool, call);
    // Meanwhile, the call may have been cancelled or the session may have ended.
    if (!session.records.calls.has(callId) || session.unit.unit.disposed) return;
    if (!checked.ok) return invalid(checked.message);
    // Speech that is not transcribed yet may add to the request that led to an earlier call.
    if (session.lead.awaitsWords === true && mayGoOn(session, { ...call, input: checked.value })) {
      await session.userInput.nextWords(WORDS_LIMIT_MS);
      if (!session.records.calls.has(callId) || session.unit.unit.disposed) return;
    }
    const { execution = 'inline', delivery = session.configs[call.name]?.delivery } =
      tool.definition;
    const isInline = execution === 'inline';
    const detach = isInline ? detachOf(tool.definition) : undefined;
    const pending = session.acknowledgesCalls ? DEFAULT_PENDING_MESSAGE : undefined;
    const { pendingMessage = isInline ? DETACHED_MESSAGE : pending } = tool.definition;
    session.projection.emit({ type: 'tool.called', callId, name: call.name, input: checked.value });
    callSafely(session.host, 'hook onToolCall', () =>
      session.hooks.onToolCall?.({ callId, name: call.name, input: checked.value }),
    );
    session.receive(`call:${callId}`, {
      type: 'call.validated',
      execution,
      acknowledge: !isInline && pendingMessage !== undefined,
      message: isInline && !detach ? undefined : pendingMessage,
      delivery: delivery ?? 'when_idle',
      input: checked.value,
      ...(detach && { detach }),
    });
  }

  /** Validates the arguments, and checks that the entries they name in `inputs` are readable. */
  async #checked(tool: LeadTool, call: CallRecord): ReturnType<LeadTool['validate']> {
    const session = this.#session;
    const checked = await this.#fitting(tool, call.callId, call.arguments);
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

  /** Validates with the app's schema, which may be asynchronous, within the tool's time limit. */
  #fitting(tool: LeadTool, callId: string, json: string): ReturnType<LeadTool['validate']> {
    const { name, timeout: timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = tool.definition;
    const { scheduler } = this.#session.host.environment;
    const late = (): Error =>
      new TimeoutError(`Validation failed: it took longer than ${timeoutMs} ms`);
    return raceTime(() => inSpanOfCall(this.#session, callId, () => tool.validate(json)), {
      timeoutMs,
      scheduler,
      late,
    }).catch((error: unknown) => {
      this.#session.host.report(error, `parameters of tool "${name}"`);
      return { ok: false, message: messageOf(error) };
    });
  }

  execute(callId: string): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    const tool = call && this.#toolOf(call);
    const { execute, client } = tool ?? {};
    if (!call || !(execute || client)) return;
    const joined = this.#joined(call);
    if (joined) return session.receive(`call:${callId}`, { type: 'call.executed', output: joined });
    const controller = new AbortController();
    this.#executing.set(callId, controller);
    const { signal } = controller;
    const settle = ({ output, failed }: Returned): void => {
      if (signal.aborted) return;
      // The tool has returned, so there is nothing to abort.
      this.#executing.delete(callId);
      const returned = session.returnedTo(callId);
      const event = { type: 'call.executed', output, ...(returned && { returned }) } as const;
      session.receive(`call:${callId}`, failed ? { ...event, failed } : event);
    };
    session.host.environment.scheduler.yieldThen(() => {
      if (signal.aborted) return;
      const run = async (): Promise<Returned> => {
        const context = toolContext(session, {
          callId,
          agentName: call.agentName,
          abortSignal: signal,
          requester: call.requestedBy ?? null,
          approver: null,
        });
        const output = await inSpanOfCall(session, callId, () =>
          client ? this.#atClient(call, client) : execute?.(call.input, context),
        );
        return this.#kept(call, output, signal);
      };
      raceAbort(run(), signal).then(settle, (error: unknown) => {
        if (!signal.aborted)
          callSafely(session.host, 'hook onToolError', () =>
            session.hooks.onToolError?.({ callId, name: call.name, error }),
          );
        const isDoubtful = !signal.aborted && codeOf(error) === NEEDS_RECONCILE;
        if (isDoubtful) this.#reportInDoubt(call);
        const output = { error: messageOf(error), ...(isDoubtful && { code: NEEDS_RECONCILE }) };
        settle({ output, failed: true });
      });
    });
  }

  #atClient({ callId, name, input, requestedBy: user = null }: CallRecord, tool: ClientTool) {
    const { clientCalls } = this.#session;
    const id = keyOf(this.#session, callId);
    return clientCalls.run({ id, callId, subagentId: null, name, input, user, tool });
  }

  /** Returns the output of a call that joins a detached call, or null if the call should be executed. */
  #joined({ callId, name, input, detachedAt }: CallRecord): Returned['output'] | null {
    const { records, unit } = this.#session;
    const work = callKey(name, input);
    const atWork = [...records.calls.values()].find(
      (other) =>
        other.callId !== callId &&
        other.detachedAt !== undefined &&
        unit.runOf(other.callId) !== null &&
        callKey(other.name, other.input) === work,
    );
    return atWork && detachedAt === undefined ? joins(name) : null;
  }

  /** Stops a detached call that only waits for subagents. Returns false for any other call. */
  #endWait(callId: string): boolean {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    const isWait = call && isWaiting(this.#toolOf(call)?.definition);
    // If the wait has already returned results, the call's delivery reports these results.
    if (!isWait || call.detachedAt === undefined || session.returnedTo(callId)) return false;
    const controller = this.#executing.get(callId);
    this.#executing.delete(callId);
    controller?.abort(new CancelledError('the conversation goes on'));
    session.receive(`call:${callId}`, { type: 'call.executed', output: null, known: true });
    return true;
  }

  /** Moves an output that is too large for the model into working memory, if the session has one. */
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
      output: await outcomes.keepLarge({ sessionId, path: [] }, ofCalls.giver.tools(), returned),
      failed,
    };
  }

  /** Aborts a call that has left `executing`. The tool's signal receives the reason. */
  stop(callId: string): void {
    const controller = this.#executing.get(callId);
    if (!controller) return;
    this.#executing.delete(callId);
    const session = this.#session;
    const { unit, records } = session;
    const call = records.calls.get(callId);
    const { name = '', cancelReason = 'the call was cancelled' } = call ?? {};
    // The tool did not finish on its own: the call was cancelled or timed out.
    const { value } = unit.calls.stateOf(callId) ?? {};
    const isCancelled = value !== 'answered' && value !== 'settled';
    controller.abort(
      isCancelled ? new CancelledError(cancelReason) : new TimeoutError(`Tool "${name}" timed out`),
    );
    const { client, definition } = (call && this.#toolOf(call)) ?? {};
    const isDoubtful = client
      ? session.clientCalls.cancel(keyOf(session, callId))
      : definition?.idempotent !== true;
    if (call && isDoubtful) this.#reportInDoubt(call);
  }

  #reportInDoubt({ callId, name: toolName, input }: CallRecord): void {
    const idempotencyKey = keyOf(this.#session, callId);
    const ofTheLead = { subagentId: null, subagentName: null };
    reportInDoubt(this.#session, { ...ofTheLead, callId, toolName, input, idempotencyKey });
  }

  answer(callId: string, answer: CallAnswer): void {
    const session = this.#session;
    const call = session.records.calls.get(callId);
    if (!call) return;
    const { name, output } = call;
    // The model does not respond when a cancelled call is answered.
    const wantsReply = answer !== 'cancelled' && !needsNoReply(name, output, session.lead);
    const isOver = session.unit.calls.stateOf(callId)?.done === true;
    // A cancelled call's record may be gone before the event is applied.
    const isRecorded = isOver && answer !== 'cancelled';
    this.answered(callId, name, output, { status: answer, isOver, isRecorded, wantsReply });
    // The next reply takes this answer into account (TEXT-LEAD-9).
    session.lead.answer(callId, { output, respond: wantsReply });
    if (isOver) session.unit.calls.forget(callId);
    else this.#endWait(callId);
    // Iterates over a copy, because `delegate` adds a call again if it still has to wait.
    const waiting = [...this.#waiting];
    for (const id of waiting) this.delegate(id);
  }

  /** Records that the model has received the answer. `isRecorded`: the call's own entry already records this. */
  answered(
    callId: string,
    name: string,
    output: unknown,
    { status = 'result', isOver = false, isRecorded = false, wantsReply = true }: Answered = {},
  ): void {
    const { projection, host, hooks } = this.#session;
    const answeredAt = host.environment.clock.now();
    const answer = {
      type: 'call.answered',
      callId,
      answeredAt,
      isOver,
      ...(!wantsReply && { wantsReply }),
    } as const;
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
    this.#waiting.delete(callId);
    // If the outbox had no room for the result, the call was rejected in the same step.
    if (!config || session.unit.calls.stateOf(callId)?.value !== 'acknowledged') return;
    const definition = checkSubagentConfig(config);
    const task = {
      toolName: call.name,
      args: call.input as Readonly<Record<string, unknown>>,
      description: this.#toolOf(call)?.definition.description ?? call.name,
    };
    if (this.#stopsBefore(callId) && this.#atWork(workOf(task)))
      return void this.#waiting.add(callId);
    const heldBack =
      this.#unreadBy(call) ?? this.#heldBackBy(definition, task) ?? this.#begunFor(call, task);
    if (heldBack) return this.#refuse(callId, heldBack);
    const delegated = session.tree.spawnFor(session.ofCalls, {
      config,
      task,
      caller: THE_LEAD,
      callId,
      idempotencyKey: keyOf(session, callId),
    });
    if (delegated.status !== 'accepted') return this.#refuse(callId, { error: delegated.error });
    const { subagentId } = delegated;
    this.#workBegan(definition, task, subagentId);
    session.receive(`call:${callId}`, { type: 'subagent.accepted', subagentId });
    if (call.output === null) session.lead.answer(callId, null);
    session.projection.emit({
      type: 'subagent.delegated',
      callId,
      agentName: call.agentName,
      subagentId,
      subagentName: definition.name,
      lifetime: definition.lifetime,
    });
  }

  #refuse(callId: string, { error, output }: Refusal): void {
    this.#session.receive(`call:${callId}`, {
      type: 'subagent.rejected',
      error,
      output,
      reserved: true,
    });
  }

  /** Returns the reason why a call is not executed (a subagent already does the same work), or null if it may be. */
  #heldBackBy({ name, duplicates }: SubagentDefinition, task: SubagentTask): Refusal | null {
    const work = workOf(task);
    const atWork = this.#atWork(work);
    if (!atWork) {
      this.#heldBack.delete(work);
      return null;
    }
    const busy = `"${name}" is at work on exactly this already`;
    const said = `${busy} (${atWork.id})`;
    if (duplicates === 'replace') return null;
    if (duplicates === 'join') return duplicate(said, { ...joins(name), subagentId: atWork.id });
    if (duplicates === 'reject') return duplicate(`${said}. Expected to be called once for it`);
    if (!this.#holdsBack(work, this.#session.records.utteranceId)) return null;
    return duplicate(said, {
      status: 'needs_confirmation',
      subagentId: atWork.id,
      message: `${busy}. Ask the user whether it shall be done a second time; if so, call again.`,
    });
  }

  /** ONE-REQUEST-1 */
  #unreadBy({ callId, requestId }: CallRecord): Refusal | null {
    const { items } = this.#session.records.conversation;
    const made = indexOfCall(items, callId);
    const said = wordsForLead(items).at(-1);
    if (requestId === null || made < 0 || !said || items.indexOf(said) < made) return null;
    const message =
      'The user has said more, which you read now. Nothing was started: call again if they still want it, with all that they said.';
    return duplicate(message, { status: 'not_started', message });
  }

  /** ONE-REQUEST-2 */
  #begunFor(call: CallRecord, task: SubagentTask): Refusal | null {
    const { records, agents } = this.#session;
    const begun =
      call.requestId !== null && agents.steers ? begunBefore(this.#session, call) : null;
    if (!begun || !this.#holdsBack(`begun ${workOf(task)}`, records.utteranceId)) return null;
    return duplicate(begun.message, begun);
  }

  /** Returns true unless a call for this work has been held back and the user has spoken since. */
  #holdsBack(work: string, utteranceId: string | null): boolean {
    const before = this.#heldBack.get(work);
    this.#heldBack.delete(work);
    if (before !== undefined && before !== utteranceId) return false;
    this.#heldBack.set(work, utteranceId);
    forgetOldest(this.#heldBack, MAX_HELD);
    return true;
  }

  /** Records accepted work. With `replace`, also cancels the earlier subagent for the same work. */
  #workBegan({ duplicates }: SubagentDefinition, task: SubagentTask, subagentId: string): void {
    const work = workOf(task);
    if (duplicates === 'replace') this.#atWork(work)?.cancel('the same work was asked for anew');
    this.#works.set(shortHashOf(work), subagentId);
    if (this.#works.size % MAX_WORKS !== 0) return;
    for (const [hash, id] of this.#works) if (!this.#session.tree.get(id)) this.#works.delete(hash);
  }

  /** Returns the subagent that does exactly this work and is not being stopped. */
  #atWork(work: string): Subagent | undefined {
    const found = this.#session.tree.get(this.#works.get(shortHashOf(work)) ?? '');
    return found && found.leaving !== 'stopping' && workOf(found.task) === work ? found : undefined;
  }

  /** Returns whether an earlier call is about to stop a task. */
  #stopsBefore(callId: string): boolean {
    const { unit, records } = this.#session;
    const { ids } = unit.calls;
    return ids.slice(0, ids.indexOf(callId)).some((id) => {
      const state = unit.calls.stateOf(id)?.value;
      const call = records.calls.get(id);
      return (
        (state === 'received' || unit.runOf(id) !== null) && call !== undefined && isStop(call)
      );
    });
  }

  #toolOf({ agentName, name }: CallRecord): LeadTool | undefined {
    return this.#session.agents.toolOf(agentName, name);
  }
}

/** Reports once that a call was interrupted. The code that runs the call writes the answer for the model. */
export function reportInDoubt(
  { projection, host, hooks }: EffectsSession,
  call: DoubtfulCall,
): void {
  const { subagentId, subagentName, callId, toolName, input, idempotencyKey } = call;
  projection.emit({
    type: 'tool.in_doubt',
    subagentId,
    subagentName,
    callId,
    toolName,
    input,
    idempotencyKey,
  });
  callSafely(host, 'hook onCallInDoubt', () => hooks.onCallInDoubt?.(call));
}

interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal: AbortSignal;
}

/**
 * Returns a lead agent's tools by name, for the subagents that its model spawns. A tool made from an AI SDK tool is
 * converted back to that tool, so that it receives the real caller. Any other inline tool is called as if the lead
 * agent had made the call. Background calls are not included, because only the lead agent can make them.
 */
export function inheritedTools(
  session: EffectsSession,
  agentName: string,
): Readonly<Record<string, unknown>> {
  const tools: Record<string, unknown> = {};
  for (const [name, { definition, execute, client }] of session.agents.toolsOf(agentName)) {
    const source = SOURCE_TOOL in definition ? definition[SOURCE_TOOL] : undefined;
    const { description, parameters: inputSchema, idempotent = false } = definition;
    const { runsAt, resultSchema, absent, timeoutMs } = definition;
    if (source !== undefined) tools[name] = source;
    else if (client)
      tools[name] = {
        description,
        inputSchema,
        idempotent,
        runsAt,
        resultSchema,
        absent,
        timeoutMs,
      };
    else if (execute)
      tools[name] = {
        description,
        inputSchema,
        idempotent,
        execute: (input: unknown, options: CallOptions) => {
          const { toolCallId: callId, abortSignal } = options;
          const { requester = null, approver = null } = callerOf(options) ?? {};
          const call = { callId, agentName, abortSignal, requester, approver };
          return execute(input, toolContext(session, call));
        },
      };
  }
  return tools;
}

/** Returns the context that an inline tool receives together with its arguments. */
function toolContext(
  session: EffectsSession,
  call: Pick<ToolContext, 'callId' | 'agentName' | 'abortSignal' | 'requester' | 'approver'>,
): ToolContext {
  return {
    ...call,
    sessionId: session.id,
    idempotencyKey: keyOf(session, call.callId),
    subagents: session.tree,
    sendJsonToClient: (data) => session.projection.emit({ type: 'client.json', data }),
    setDirective: session.agents.setDirective,
  };
}

/** Calls a function of the app inside the call's span. */
function inSpanOfCall<T>({ id, host }: EffectsSession, callId: string, call: () => T): T {
  return inSpanOf(host, { scope: id, unit: id, part: { callId } }, call);
}

/** Returns a call's idempotency key, which is the same for every attempt, even in a later process. */
function keyOf({ id }: EffectsSession, callId: string): string {
  return `${id}:${callId}`;
}

/** Converts an inline tool's return value to JSON of limited size, for the model, the journal and the network. */
function answerOf(toolName: string, returned: unknown, maxBytes: number): Returned {
  if (isError(returned)) return { output: { error: messageOf(returned) }, failed: true };
  const kept = keepOutput(returned ?? null, maxBytes);
  if (kept.ok) return { output: kept.value, failed: false };
  return { output: { error: `Tool "${toolName}" ${kept.message}` }, failed: true };
}

/** Returns the output of a call for work that is already running. The output has no ids, because a model may say it aloud. */
function joins(name: string) {
  const message = `"${name}" is at work on exactly this already. Nothing was started a second time; its result comes once.`;
  return { status: 'already_in_progress', message };
}

/** Returns whether a tool only waits for subagents and changes nothing. */
function isWaiting(tool: ToolDefinition | undefined): boolean {
  if (!tool || !(SOURCE_TOOL in tool)) return false;
  return tool.name === AWAIT_SUBAGENT && delegates(tool[SOURCE_TOOL]);
}

/**
 * Returns the time after which an inline tool's calls are detached, or undefined if they never are. By default, if a
 * tool waits for subagents or for a page, its calls are detached only when the user speaks or writes. The tool's own
 * time limit ends the wait.
 */
function detachOf(tool: ToolDefinition) {
  const { afterMs, onWords } = tool.detach ?? {};
  if (afterMs === undefined && onWords === false) return undefined;
  const isBound = onWords !== false && tool.runsAt !== 'client' && !isWaiting(tool);
  const wordsMs = onWords === undefined ? WORDS_WAIT_MS : onWords ? 0 : null;
  return { afterMs: afterMs ?? (isBound ? REPLY_WAITS_MS : null), wordsMs };
}

function duplicate(message: string, output?: Refusal['output']): Refusal {
  return { error: { code: 'DUPLICATE', message, retryable: false }, output };
}

/** Returns the key of the work: the tool and its arguments, in any order. */
function workOf({ toolName, args }: SubagentTask): string {
  return callKey(toolName, args);
}
