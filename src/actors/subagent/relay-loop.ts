// The loop of a subagent when a third-party agent, and not a model, does the work. Each step waits for the next agent
// event that must be written to the journal before the work continues: the agent's session, a tool that it runs, a
// permission or a question, or the end of its turn. A permission request becomes a call to the tool `agent_tool` that
// needs approval, and a question becomes a call to `ask_user`. States, approvals, limits, ledger and recovery therefore
// work as for any subagent.
//
// Owns:     the session with the agent, and its open requests.
// Does not: implement a protocol (the relay does), read and truncate incoming events (relay-inbox.ts), decide on
//           permissions, or store answers (the log does).
//
// Invariants
//   RELAY-LOOP-1. The agent receives answers only from the ledger. Each answer is stored there under the call that
//       represents the request.
//   RELAY-LOOP-2. If a tool was running when the connection was lost or the process ended, its call is settled with the
//       error NEEDS_RECONCILE.
//   RELAY-LOOP-3. If a turn may already have started, it is restarted only with a message that says so to the agent.
//   RELAY-LOOP-4. A permission request that is too long to be shown in full is denied without asking the user.
//   RELAY-LOOP-5. Every request from the agent is answered, even if it is unreadable, so that the agent never waits
//       forever.

import type { JSONValue, ModelMessage } from 'ai';
import { z } from 'zod';
import { clip } from '../../values/clip.ts';
import { messageOf, OffstageError, ProtocolError, ProviderError } from '../../values/errors.ts';
import { propertiesOf, asJson } from '../../values/json.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import { addUsage, NO_USAGE, TOKEN_KINDS, type Usage } from '../contracts/usage.ts';
import type { ModelCall, ModelResponse } from '../model/model-step.ts';
import type { PreparedTools } from '../model/tools.ts';
import { prepareTools } from '../model/tools.ts';
import { defaultModelOutput, toolError, type ToolOutcome } from '../model/tool-results.ts';
import { quoted } from '../notes/note.ts';
import type {
  Relay,
  RelayAnswer,
  RelayEvent,
  RelayExecutor,
  RelaySession,
  RelayTool,
} from '../ports/relay.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { AGENT_TOOL, ASK_USER } from './ask-user.ts';
import { createChildSubagentToolset } from './child-toolset.ts';
import type { Acting, Executor, ExecutorRun, Maker, Thinking } from './executor.ts';
import { releaseInTime } from './instance.ts';
import {
  MAX_LABEL,
  MAX_WORDS,
  readRelayEvent,
  RelayInbox,
  type UnreadableEvent,
} from './relay-inbox.ts';
import { INTERRUPTED } from './subagent-log.ts';

/** The call that records the agent's session id. If there are several such calls, the last one counts. */
const START_AGENT = 'start_agent';
const COMPLETE_TASK = 'complete_task';

const MAX_ARTIFACTS = 20;
/** The maximum length of the arguments in a permission request, in characters. */
const MAX_ARGUMENTS = 1024 * 1024;
/**
 * The maximum number of choices that are shown as buttons. If there are more, the user names the choice by voice or
 * text.
 */
const MAX_BUTTONS = 20;
const CHARACTERS_PER_TOKEN = 4;

/** The parts of a step that this loop reads, and the subagent's ledger. */
interface RelayStep extends Pick<
  Thinking,
  'step' | 'instructions' | 'messages' | 'final' | 'said'
> {
  readonly ledger: readonly LedgerEntry[];
  readonly signal: AbortSignal;
}

/** A call to `agent_tool`, and the agent's event that settles it. */
interface Work {
  readonly title: string;
  /** The permission request that the call represents. */
  readonly requestId?: string;
  readonly toolId?: string;
  /** The outcome that the call reports if the tool has already finished. */
  readonly outcome?: ToolOutcome;
}

type Ended = Extract<RelayEvent, { readonly type: 'turn_ended' }>;

const anything = z.record(z.string(), z.unknown());

const CUT_OFF = `Your connection ended, perhaps in the middle of a turn. What you had asked was withdrawn, and a step that was under way may or may not have been done. Find out what is done before you repeat anything, ask again for what you still need, and then go on with the task.`;

/** Creates the executor of a subagent with a relay: `Relay.loop`. */
export const relayLoop: RelayExecutor & Maker<Relay> = {
  stepsBy: 'relay',
  make: (run, relay) => new RelayLoop(run, relay),
};

class RelayLoop implements Executor {
  readonly isRemote = true;
  readonly tools: PreparedTools;
  readonly #owner: ExecutorRun;
  readonly #relay: Relay;
  /** The part of this loop's call ids that is unique to this process. */
  readonly #generation: string;
  #session: RelaySession | null = null;
  /** The number of the current session, used to drop late events from earlier sessions. */
  #connection = 0;
  readonly #inbox = new RelayInbox();
  #wake: (() => void) | null = null;
  #isNudged = false;
  #isInterrupted = false;
  /** Whether a turn is running, according to the events that have been processed. */
  #isTurn = false;
  #isReleased = false;
  #calls = 0;
  #words = '';
  /** The last text that contained more than white space. */
  #said = '';
  /**
   * The number of messages that have been passed to the agent. Null means all messages before its last question.
   */
  #read: number | null = 0;
  #prompts = 0;
  /** Text that is sent to the agent when its turn has ended. */
  #later: string[] = [];
  #denied: string | null = null;
  /** The usage since the last step; `cost` is absent if the agent has reported none. */
  #used: Usage = NO_USAGE;
  #artifacts: Extract<RelayEvent, { readonly type: 'artifact' }>[] = [];
  /** The agent's open requests, each with the id of the call that represents it. */
  readonly #requests = new Map<string, string>();
  readonly #works = new Map<string, Work>();
  /** The agent's running tools whose calls are already settled, by tool id. */
  readonly #running = new Map<string, { readonly callId: string; readonly tool: RelayTool }>();

  constructor(owner: ExecutorRun, relay: Relay) {
    this.#owner = owner;
    this.#relay = relay;
    this.#generation = owner.host.environment.ids.next('rly');
    this.tools = this.#ownTools(owner.definition.name);
  }

  #ownTools(path: string): PreparedTools {
    const { openQuestionSurvives } = this.#relay.capabilities;
    const entry = { inputSchema: anything, description: '' };
    const { complete_task } = createChildSubagentToolset();
    return prepareTools({}, path, {
      builtIn: {
        [START_AGENT]: { ...entry, idempotent: true },
        [AGENT_TOOL]: {
          ...entry,
          needsApproval: (_input: unknown, { toolCallId }: { toolCallId: string }) =>
            this.#works.get(toolCallId)?.requestId !== undefined,
          // If the agent's questions survive a restart, the agent asks the same question again with the same id, and
          // receives an answer again.
          idempotent: openQuestionSurvives,
        },
        [COMPLETE_TASK]: complete_task,
      },
    });
  }

  /** Waits for the next agent event that must be written to the journal. Settles as soon as the signal aborts. */
  async think(step: Thinking, signal: AbortSignal): Promise<ModelResponse> {
    signal.throwIfAborted();
    try {
      return await this.#step({ ...step, signal, ledger: this.#ledger });
    } catch (error) {
      if (signal.aborted) this.#isInterrupted = true;
      throw error;
    }
  }

  get #ledger(): readonly LedgerEntry[] {
    return this.#owner.worker.log.ledger;
  }

  /** Runs a call that `think` returned. */
  async act(acting: Acting, signal: AbortSignal): Promise<ToolOutcome> {
    const { call } = acting;
    if (call.toolName === START_AGENT) return done(call.input as JSONValue);
    try {
      return (await this.#run(call, signal)) ?? this.#lost(acting);
    } catch (error) {
      if (!signal.aborted) return toolError(messageOf(error), 'FAILED');
      this.#isInterrupted = true;
      return toolError('interrupted', 'CANCELLED');
    }
  }

  /** Ends the current step early, to let the agent read a message. */
  nudge(): void {
    if (!this.#relay.capabilities.steers || !this.#isTurn) return;
    this.#isNudged = true;
    this.#wake?.();
  }

  release(why: 'ended' | 'suspended'): Promise<void> {
    const { host, definition } = this.#owner;
    return releaseInTime(host, `relay of ${definition.name}`, () => this.#letGo(why));
  }

  async #letGo(why: 'ended' | 'suspended'): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const session = this.#session;
    this.#session = null;
    if (session) await session.release(why);
    else if (why === 'ended') await this.#relay.discard?.(this.#owner.worker.id);
  }

  #report(error: unknown): void {
    const { host, definition } = this.#owner;
    host.report(error, `relay of ${definition.name}`);
  }

  #lost({ call: { callId, input }, inDoubt }: Acting): ToolOutcome {
    inDoubt();
    const title = this.#works.get(callId)?.title ?? titleOf(input);
    return toolError(
      `The connection to the agent ended while it ran ${quoted(title)}: whether it was done is not known.`,
      'NEEDS_RECONCILE',
    );
  }

  async #step(step: RelayStep): Promise<ModelResponse> {
    const { signal, ledger, final } = step;
    const known = sessionIn(ledger);
    if (final) return this.#handIn(step);
    if (!this.#session) {
      if (known === null) {
        const { id: session } = await this.#open(undefined, signal);
        return this.#respond([callOf(START_AGENT, { session }, this.#nextCallId())]);
      }
      const lost = runningIn(ledger);
      if (lost.length > 0)
        return this.#respond(
          lost.map(({ callId, input }) => callOf(AGENT_TOOL, input, endOf(callId))),
        );
      await this.#takeUp(step, known);
    }
    const session = this.#openSession;
    this.#passAnswers(ledger);
    if (this.#isInterrupted) {
      this.#isInterrupted = false;
      await this.#stopTurn(signal);
    }
    const read = this.#read ?? step.messages.findLastIndex(({ role }) => role !== 'user') + 1;
    const told = wordsOf(step.messages.slice(read));
    this.#read = step.messages.length;
    this.#isNudged = false;
    if (!this.#isTurn) this.#prompt(step, [...(this.#prompts === 0 ? opening(step) : told)]);
    else if (told.length > 0 && this.#relay.capabilities.steers) session.steer(told.join('\n\n'));
    else this.#later.push(...told);
    return this.#nextPause(step);
  }

  /** Resumes a session that an earlier connection started. */
  async #takeUp(step: RelayStep, known: string): Promise<void> {
    const relay = this.#relay;
    const { openQuestionSurvives, resumes } = relay.capabilities;
    if (!resumes && !openQuestionSurvives)
      throw new OffstageError(
        'RELAY_LOST',
        `The connection to ${relay.name} ended, and it cannot take its session up again: what it has done is not known`,
      );
    const session = await this.#open(known, step.signal);
    this.#isInterrupted = false;
    this.#denied = null;
    if (session.isRunning) {
      this.#continueTurn();
      return;
    }
    // RELAY-LOOP-3
    this.#read = step.messages.length;
    this.#prompt(step, [CUT_OFF, ...sinceAsked(step.ledger), ...opening(step)]);
  }

  /** Continues a turn that an earlier connection started. */
  #continueTurn(): void {
    this.#isTurn = true;
    this.#prompts = 1;
    this.#read = null;
  }

  async #open(resume: string | undefined, signal: AbortSignal): Promise<RelaySession> {
    const { host, worker, traceOf } = this.#owner;
    const { scheduler, ids } = host.environment;
    const report = (error: unknown): void => this.#report(error);
    const connection = (this.#connection += 1);
    this.#inbox.clear();
    this.#requests.clear();
    this.#running.clear();
    const starting = this.#relay.start({
      subagentId: worker.id,
      ...(resume === undefined ? {} : { resume }),
      task: { ...worker.task, scope: host.scope },
      signal,
      traceparent: () => traceOf()?.traceparent,
      scheduler,
      ids,
      receive: (event) => {
        if (connection === this.#connection) this.#receive(event);
      },
      report,
    });
    // If the session is opened only after an abort, it is released.
    const late = async (): Promise<void> => {
      const session = await starting;
      if (this.#session !== session) await session.release('suspended');
    };
    const session = await raceAbort(starting, signal).catch((error: unknown) => {
      late().catch(() => {});
      throw error;
    });
    if (signal.aborted || this.#isReleased) {
      late().catch(report);
      signal.throwIfAborted();
      throw new OffstageError('RELAY_CLOSED', 'The subagent has ended');
    }
    this.#session = session;
    return session;
  }

  get #openSession(): RelaySession {
    if (this.#session) return this.#session;
    throw new OffstageError('INTERNAL', 'no session with the agent is open');
  }

  #prompt({ step }: RelayStep, texts: readonly string[]): void {
    const text = [...this.#later, ...texts].join('\n\n');
    this.#later = [];
    this.#isTurn = true;
    this.#denied = null;
    this.#prompts += 1;
    this.#openSession.prompt({ key: `${this.#owner.worker.id}:${step}:${this.#prompts}`, text });
  }

  /** RELAY-LOOP-1 */
  #passAnswers(ledger: readonly LedgerEntry[]): void {
    for (const [requestId, callId] of this.#requests) {
      const entry = ledger.findLast((one) => one.callId === callId);
      if (!entry) continue;
      this.#requests.delete(requestId);
      // A message was sent instead of the answer, and it ended the turn.
      if (String(entry.output).startsWith(INTERRUPTED)) this.#isInterrupted = true;
      const answer = answerOf(entry);
      if (answer.type === 'denied') this.#denied = titleOf(entry.input);
      this.#openSession.answer(requestId, answer);
    }
  }

  /** Ends the running turn, because a message interrupted it. */
  async #stopTurn(signal: AbortSignal): Promise<void> {
    if (!this.#isTurn) return;
    this.#openSession.interrupt();
    for (;;) {
      const event = await this.#next(signal);
      if (event.type === 'closed') throw this.#closed(event.message);
      if (event.type === 'words') this.#hear(event.text, undefined);
      if (event.type === 'turn_ended') break;
    }
    this.#requests.clear();
    this.#running.clear();
    this.#isTurn = false;
  }

  async #handIn({ signal }: RelayStep): Promise<ModelResponse> {
    if (this.#session) await this.#stopTurn(signal);
    return this.#respond([], this.#lastWords);
  }

  /** The text since the last step. If it is blank, the last text that was not blank. */
  get #lastWords(): string {
    return this.#words.trim() === '' ? this.#said : this.#words;
  }

  /** Processes events until one has to be written to the journal. */
  async #nextPause(step: RelayStep): Promise<ModelResponse> {
    for (;;) {
      await this.#waiting(step.signal);
      if (this.#inbox.length === 0) {
        this.#isNudged = false;
        // The turn continues. The step ends only so that the agent can read a message.
        return { ...this.#respond([]), finish: 'tool-calls' };
      }
      const event = await this.#next(step.signal);
      const calls = this.#take(event, step);
      if (calls) return calls;
    }
  }

  #take(event: RelayEvent, step: RelayStep): ModelResponse | null {
    switch (event.type) {
      case 'words':
        this.#hear(event.text, step.said);
        return null;
      case 'artifact':
        this.#gather(event);
        return null;
      case 'tool_started': {
        const { toolId, title, kind, input } = event;
        const tool: RelayTool = { title, kind, input };
        if (this.#running.has(toolId)) return null;
        const callId = this.#nextCallId();
        this.#works.set(callId, { title: tool.title, toolId });
        this.#running.set(toolId, { callId, tool });
        return this.#respond([callOf(AGENT_TOOL, tool, callId)]);
      }
      case 'tool_ended': {
        const running = this.#running.get(event.toolId);
        if (!running) return null;
        this.#running.delete(event.toolId);
        const callId = endOf(running.callId);
        const { title } = running.tool;
        this.#works.set(callId, { title, outcome: outcomeOf(event) });
        return this.#respond([callOf(AGENT_TOOL, running.tool, callId)]);
      }
      case 'permission':
        return this.#asksPermission(event, step.ledger);
      case 'question':
        return this.#asks(event, step.ledger);
      case 'turn_ended':
        return this.#turnEnded(event, step);
      case 'closed':
        throw this.#closed(event.message);
      case 'session_id':
        return this.#respond([callOf(START_AGENT, { session: event.id }, this.#nextCallId())]);
      case 'withdrawn':
      case 'progress':
      case 'usage':
        return null;
    }
  }

  #asksPermission(
    event: Extract<RelayEvent, { readonly type: 'permission' }>,
    ledger: readonly LedgerEntry[],
  ): ModelResponse | null {
    const { requestId, toolId, title, kind, lasting = '' } = event;
    const callId = this.#callIdOf(requestId, ledger);
    if (callId === null) return null;
    const input = asJson(event.input ?? null);
    const length = input.ok ? input.text.length + title.length : 0;
    if (!input.ok || length > MAX_ARGUMENTS) {
      this.#denyUnseen(event, input.ok ? `they have ${length} characters` : input.message);
      return null;
    }
    const tool: RelayTool = { title, kind, input: input.value };
    this.#requests.set(requestId, callId);
    this.#works.set(callId, workOf(event));
    const offer = lasting.trim() === '' ? {} : { lasting: lasting.trim() };
    return this.#respond([
      ...this.#notYetRun(toolId),
      callOf(AGENT_TOOL, { ...tool, ...offer }, callId),
    ]);
  }

  /**
   * Settles a tool's call when the tool was reported as running but still needs permission. Codex reports tools in this
   * way.
   */
  #notYetRun(toolId: string | undefined): readonly ModelCall[] {
    const reported = toolId === undefined ? undefined : this.#running.get(toolId);
    if (toolId === undefined || !reported) return [];
    this.#running.delete(toolId);
    const callId = endOf(reported.callId);
    const { tool } = reported;
    this.#works.set(callId, {
      title: tool.title,
      outcome: done({ status: 'waits for permission' }),
    });
    return [callOf(AGENT_TOOL, tool, callId)];
  }

  /** RELAY-LOOP-4 */
  #denyUnseen(event: Extract<RelayEvent, { type: 'permission' }>, why: string): void {
    const { requestId } = event;
    const title = titleOf(event);
    const message = `${this.#relay.name} asked for ${quoted(title)} with arguments that cannot be shown: ${why}`;
    this.#report(new ProtocolError('INVALID_EVENT', message));
    this.#denied = title;
    const words = `Nobody was asked: the arguments cannot be shown to the user (${why}).`;
    this.#openSession.answer(requestId, { type: 'denied', words });
  }

  #asks(
    { requestId, text, options = [] }: Extract<RelayEvent, { readonly type: 'question' }>,
    ledger: readonly LedgerEntry[],
  ): ModelResponse | null {
    const callId = this.#callIdOf(requestId, ledger);
    if (callId === null) return null;
    const isLong = options.length > MAX_BUTTONS;
    const labels = isLong ? `\nOne of: ${options.map(({ label }) => label).join(', ')}` : '';
    const question = clip(text.trim() + labels, MAX_LABEL);
    if (!this.#owner.definition.interactive || question === '') {
      this.#openSession.answer(requestId, { type: 'cancelled' });
      return null;
    }
    this.#requests.set(requestId, callId);
    const choices = isLong ? [] : options.map((one) => ({ ...one, label: one.label || one.id }));
    const input = { question, ...(choices.length > 0 ? { options: choices } : {}) };
    return this.#respond([callOf(ASK_USER, input, callId)]);
  }

  /**
   * Returns the id of the call that will represent a request, or null if the request already has one. If a process
   * answered the request and then died, the request receives the same answer again.
   */
  #callIdOf(requestId: string, ledger: readonly LedgerEntry[]): string | null {
    if (this.#requests.has(requestId)) return null;
    if (!this.#relay.capabilities.openQuestionSurvives) return this.#nextCallId();
    const callId = SURVIVING + requestId;
    const entry = ledger.findLast((one) => one.callId === callId);
    if (!entry) return callId;
    this.#openSession.answer(requestId, answerOf(entry));
    return null;
  }

  #turnEnded({ reason, message }: Ended, step: RelayStep): ModelResponse | null {
    const { name } = this.#relay;
    this.#isTurn = false;
    const denied = this.#denied;
    this.#running.clear();
    if (reason === 'completed') {
      if (this.#later.length > 0) {
        if (this.#words !== '') this.#words += '\n\n';
        this.#prompt(step, []);
        return null;
      }
      return this.#completed();
    }
    // Some agents end their turn when a permission is denied.
    if (reason === 'cancelled' && denied !== null)
      throw new OffstageError(
        'RELAY_DENIED',
        `${name} ended its work: ${quoted(denied)} was not permitted`,
      );
    const because = message === undefined || message === '' ? '' : `: ${clip(message, 1_000)}`;
    const { code, says } = ENDINGS[reason];
    throw new OffstageError(code, `${name} ${says}${because}`);
  }

  #completed(): ModelResponse {
    const text = this.#lastWords;
    if (this.#artifacts.length === 0) return this.#respond([], text);
    const artifacts = this.#artifacts.map(({ name, mediaType, content }) => ({
      type: mediaType,
      name,
      content,
    }));
    this.#artifacts = [];
    const result = clip(text.trim(), 20_000) || 'Done.';
    return this.#respond([callOf(COMPLETE_TASK, { result, artifacts }, this.#nextCallId())]);
  }

  #closed(message: string): OffstageError {
    const relay = this.#relay;
    const session = this.#session;
    this.#session = null;
    this.#isTurn = false;
    // The session may be resumed later, so its local data is kept until the subagent ends.
    session?.release('suspended').catch((error: unknown) => this.#report(error));
    return new ProviderError('RELAY_CLOSED', `The connection to ${relay.name} ended: ${message}`, {
      retryable: relay.capabilities.resumes || relay.capabilities.openQuestionSurvives,
    });
  }

  /**
   * Permits the call's tool, or waits until one of the agent's tools has finished. Returns null if the outcome of the
   * tool is unknown.
   */
  async #run(
    { callId, lasting }: Pick<ModelCall, 'callId' | 'lasting'>,
    signal: AbortSignal,
  ): Promise<ToolOutcome | null> {
    const work = this.#works.get(callId) ?? (await this.#workAgain(callId, signal));
    if (!work || work.outcome) return work?.outcome ?? null;
    const { requestId, toolId, title } = work;
    if (requestId !== undefined && this.#requests.delete(requestId)) {
      this.#openSession.answer(requestId, permitted(lasting));
      if (toolId !== undefined && !this.#running.has(toolId))
        this.#running.set(toolId, { callId, tool: { title, kind: '', input: null } });
    }
    if (toolId === undefined || !this.#relay.capabilities.reportsTools)
      return done({ status: 'permitted' });
    for (;;) {
      await this.#waiting(signal);
      const event = this.#inbox.first;
      if (event?.type === 'closed') return null;
      if (event?.type === 'tool_ended' && event.toolId === toolId) {
        this.#inbox.shift();
        this.#running.delete(toolId);
        return outcomeOf(event);
      }
      // The agent has reported the permitted tool a second time.
      const isSame = event?.type === 'tool_started' && event.toolId === toolId;
      if (isSame || event?.type === 'words' || event?.type === 'artifact') {
        this.#inbox.shift();
        if (event.type === 'words') this.#hear(event.text, undefined);
        else if (event.type === 'artifact') this.#gather(event);
        continue;
      }
      if (event?.type === 'turn_ended') {
        this.#running.delete(toolId);
        return done({ status: 'ended', result: 'not reported' });
      }
      // The next event needs its own step. This tool's result is reported when it arrives.
      return done({ status: RUNNING });
    }
  }

  /** Resumes a permission that an earlier process may not have passed to the agent. The agent requests it again. */
  async #workAgain(callId: string, signal: AbortSignal): Promise<Work | null> {
    const known = sessionIn(this.#ledger);
    if (this.#session || known === null || !callId.startsWith(SURVIVING)) return null;
    const session = await this.#open(known, signal);
    if (!session.isRunning) return null;
    this.#continueTurn();
    const requestId = callId.slice(SURVIVING.length);
    for (;;) {
      await this.#waiting(signal);
      const event = this.#inbox.find(({ type }) => type !== 'words');
      if (!event) {
        await this.#more(signal);
        continue;
      }
      if (event.type !== 'permission' || event.requestId !== requestId) return null;
      this.#inbox.remove(event);
      this.#requests.set(requestId, callId);
      const work = workOf(event);
      this.#works.set(callId, work);
      return work;
    }
  }

  #receive(given: RelayEvent): void {
    const event = readRelayEvent(given);
    if ('why' in event) {
      this.#unreadable(given, event);
      return;
    }
    this.#owner.alive();
    switch (event.type) {
      case 'progress':
        if (event.text.trim() !== '' && !this.#isReleased)
          this.#owner.progressed(event.text.trim());
        return;
      case 'usage':
        this.#used = addUsage(this.#used, { ...event, totalTokens: 0 });
        return;
      case 'withdrawn':
        this.#withdrawn(event.requestId, 'withdrawn by the agent');
        return;
      case 'tool_started':
      case 'tool_ended':
        if (!this.#relay.capabilities.reportsTools) return;
        break;
      case 'turn_ended':
      case 'closed':
        for (const requestId of this.#requests.keys())
          this.#withdrawn(requestId, 'withdrawn: the agent has ended its turn');
        break;
      case 'words':
      case 'artifact':
      case 'permission':
      case 'question':
      case 'session_id':
        break;
    }
    this.#keep(event);
    this.#wake?.();
  }

  /** RELAY-LOOP-5 */
  #unreadable(raw: RelayEvent, { why, requestId }: UnreadableEvent): void {
    const message = `Expected an event of ${this.#relay.name}, got one that cannot be read: ${why}`;
    this.#report(new ProtocolError('INVALID_EVENT', message, { raw }));
    const connection = this.#connection;
    if (requestId !== null)
      this.#owner.host.environment.scheduler.yieldThen(() => {
        if (connection !== this.#connection) return;
        try {
          this.#session?.answer(requestId, { type: 'cancelled' });
        } catch (error) {
          this.#report(error);
        }
      });
  }

  #keep(event: RelayEvent): void {
    const tooMuch = this.#inbox.push(event);
    if (tooMuch === null) return;
    this.#connection += 1;
    this.#inbox.clear();
    this.#inbox.push({ type: 'closed', message: tooMuch });
  }

  /** Withdraws a request, whether a step has processed it or not. */
  #withdrawn(requestId: string, reason: string): void {
    const waiting = this.#inbox.find(
      (event) =>
        (event.type === 'permission' || event.type === 'question') && event.requestId === requestId,
    );
    if (waiting) this.#inbox.remove(waiting);
    const callId = this.#requests.get(requestId);
    if (callId === undefined) return;
    this.#requests.delete(requestId);
    this.#owner.withdrawn(callId, reason);
  }

  async #next(signal: AbortSignal): Promise<RelayEvent> {
    for (;;) {
      const event = this.#inbox.shift();
      if (event) return event;
      await this.#more(signal);
    }
  }

  /** Waits for an event, or for a message that the agent must read. */
  async #waiting(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#inbox.length === 0 && !this.#isNudged) await this.#more(signal);
  }

  async #more(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await raceAbort(promise, signal);
    signal.throwIfAborted();
  }

  #gather(artifact: Extract<RelayEvent, { readonly type: 'artifact' }>): void {
    if (this.#artifacts.length < MAX_ARTIFACTS) this.#artifacts.push(artifact);
  }

  #hear(text: string, said: Thinking['said']): void {
    this.#words = clip(this.#words + text, MAX_WORDS);
    said?.({ type: 'text', delta: text });
  }

  #nextCallId(): string {
    this.#calls += 1;
    return `${this.#generation}.${this.#calls}`;
  }

  #respond(calls: readonly ModelCall[], text = this.#words): ModelResponse {
    if (this.#words.trim() !== '') this.#said = this.#words;
    this.#words = '';
    const { cost, totalTokens: _none, ...tokens } = this.#used;
    this.#used = NO_USAGE;
    const used = { ...tokens };
    // Some agents report fractional tokens.
    for (const kind of TOKEN_KINDS) {
      const count = used[kind];
      if (count !== undefined) used[kind] = Math.round(count);
    }
    const counted = used.inputTokens + used.outputTokens;
    const priced = cost === undefined ? {} : { cost };
    const estimated = Math.ceil(text.length / CHARACTERS_PER_TOKEN);
    const content = [
      ...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]),
      ...calls.map(({ callId: toolCallId, toolName, input }) => ({
        type: 'tool-call' as const,
        toolCallId,
        toolName,
        input,
      })),
    ];
    return {
      text,
      assistantMessages: content.length === 0 ? [] : [{ role: 'assistant', content }],
      calls,
      finish: calls.length > 0 ? 'tool-calls' : 'stop',
      usage:
        counted > 0
          ? { ...used, totalTokens: counted, ...priced }
          : { inputTokens: 0, outputTokens: estimated, totalTokens: estimated, ...priced },
    };
  }
}

/** The prefix of calls that represent questions from an agent with `openQuestionSurvives`. */
const SURVIVING = 'ask:';
/** The status of a tool that was still running when the agent asked a question or started another tool. */
const RUNNING = 'running';

const ENDINGS = {
  cancelled: { code: 'RELAY_CANCELLED', says: 'cancelled its work by itself' },
  refused: { code: 'RELAY_REFUSED', says: 'refused the task' },
  limit: { code: 'RELAY_LIMIT', says: 'reached a limit of its own' },
  failed: { code: 'RELAY_FAILED', says: 'failed' },
} as const;

function callOf(toolName: string, input: unknown, callId: string): ModelCall {
  return { callId, toolName, input };
}

/** If a tool's call was settled while the tool was running, returns the id of the call that reports the tool's end. */
function endOf(callId: string): string {
  return `${callId}.end`;
}

function sessionIn(ledger: readonly LedgerEntry[]): string | null {
  const input = ledger.findLast(({ toolName }) => toolName === START_AGENT)?.input;
  const { session } = propertiesOf(input);
  return typeof session === 'string' ? session : null;
}

/** Returns the calls that were settled while their tools were running and whose tools are not reported as finished. */
function runningIn(ledger: readonly LedgerEntry[]): readonly LedgerEntry[] {
  const ids = new Set(ledger.map(({ callId }) => callId));
  return ledger.filter(
    ({ toolName, output, callId }) =>
      toolName === AGENT_TOOL &&
      propertiesOf(output)['status'] === RUNNING &&
      !ids.has(endOf(callId)),
  );
}

/** Returns the user's answer to the last question, which the agent may not have received. */
function sinceAsked(ledger: readonly LedgerEntry[]): readonly string[] {
  const last = ledger.at(-1);
  if (last?.toolName === ASK_USER && last.status === 'ok')
    return [
      `You had asked: ${quoted(asValue(last.input))}\nThe user answered: ${quoted(asValue(last.output))}`,
    ];
  if (last?.toolName === AGENT_TOOL && last.status === 'denied')
    return [`The user did not permit this: ${quoted(titleOf(last.input))}`];
  return [];
}

function opening({ instructions, messages }: RelayStep): readonly string[] {
  return [instructions, ...wordsOf(messages)];
}

function wordsOf(messages: readonly ModelMessage[]): readonly string[] {
  return messages.flatMap(({ role, content }) => {
    if (role !== 'user') return [];
    if (typeof content === 'string') return [content];
    return content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  });
}

function asValue(value: unknown): JSONValue {
  const json = asJson(value ?? null);
  return json.ok ? json.value : null;
}

function workOf(event: Extract<RelayEvent, { readonly type: 'permission' }>): Work {
  const { requestId, toolId } = event;
  return { title: titleOf(event), requestId, ...(toolId === undefined ? {} : { toolId }) };
}

function titleOf(input: unknown): string {
  const { title } = (input ?? {}) as Partial<RelayTool>;
  return typeof title === 'string' ? clip(title, MAX_LABEL) : 'a tool';
}

/** RELAY-PORT-3 */
function permitted(lasting: true | undefined): RelayAnswer {
  return { type: 'permitted', ...(lasting && { lasting }) };
}

function answerOf({ toolName, status, output, lasting }: LedgerEntry): RelayAnswer {
  if (status === 'denied')
    return { type: 'denied', words: typeof output === 'string' ? output : '' };
  if (status !== 'ok') return { type: 'cancelled' };
  if (toolName === AGENT_TOOL) return permitted(lasting);
  const { userResponse = '', optionId } = output as {
    readonly userResponse?: string;
    readonly optionId?: string;
  };
  return { type: 'answered', text: userResponse, ...(optionId === undefined ? {} : { optionId }) };
}

function done(output: JSONValue): ToolOutcome {
  return { status: 'ok', output, modelOutput: defaultModelOutput(output) };
}

function outcomeOf({ ok, output }: { readonly ok: boolean; readonly output: unknown }) {
  const value = asValue(output);
  if (ok) return done(value);
  return toolError(typeof value === 'string' ? value : JSON.stringify(value), 'FAILED');
}
