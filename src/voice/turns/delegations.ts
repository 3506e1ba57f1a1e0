// Delegations by a voice model that does not call tools by name: the model reports that a task is to be done, and the
// session works out the calls from the conversation.
//
//   created ─▶ the user's words settle ─▶ interpreted ┬─▶ calls, as if the model had made them
//      │              │                       │       ├─▶ an answer to say
//      │              └─ for a subagent: no call       └─▶ failed: the model tells the user
//      └─ the connection is lost, the session is closed: aborted, forgotten
//
// Owns:     the delegations that have not been interpreted yet, and their interpretation, either by one step of a text
//           model or without a model.
// Does not: run the calls (session).
//
// Invariants
//   DELEGATIONS-1. Each delegation is answered once (`delegation.accept` or `delegation.answer`) or dropped together
//       with its connection. The answer is never sent to a later connection.
//   DELEGATIONS-2. The lead agent does not repeat a task that the user gave to a subagent.
//   DELEGATIONS-3. Each delegation ends, because it waits at most `settleTimeoutMs` for the user's words and at most
//       `responseTimeoutMs` for the text model.
//   DELEGATIONS-4. The voice model is informed of the calls that a delegation stands for before any of these calls is
//       answered.
//   DELEGATIONS-5. Several delegations about the same words are interpreted only once: the first receives the calls,
//       and the others are accepted without a call. If a model splits one request into two delegations, the work is
//       therefore not done twice.

import type { LanguageModel, ModelMessage } from 'ai';
import { useOf } from '../../actors/model/price.ts';
import { modelCallsOf } from '../../actors/session/lead/lead-usage.ts';
import { modelError, runModelStep } from '../../actors/model/model-step.ts';
import { knownJsonSchema, wrapSchema } from '../../actors/model/schema.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import type { LeadAgent } from '../../actors/session/lead/lead-agent.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { modelToolsOf } from '../../actors/session/lead/lead-tools.ts';
import { turnContext, withTurnContext } from '../../actors/session/lead/settle-tool.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import { CancelledError, ConfigurationError, ProviderError } from '../../values/errors.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { MadeCall, Turn } from '../output/turn.ts';
import type { VoiceTranscript } from '../output/voice-transcript.ts';

/** The interpretation of a delegation, which consists of calls, or of words to say if there are no calls. */
export interface Meant {
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly text: string;
}

export interface DelegationRequest {
  /** The words of an unfinished utterance so far, which may be empty. */
  readonly unfinished: string;
  readonly signal: AbortSignal;
}

/** Interprets a delegation. Rejects with the model's error or `signal.reason`. */
export type WorkOut = (request: DelegationRequest) => Promise<Meant>;

export interface DelegationsOptions {
  readonly settleTimeoutMs: number;
  readonly responseTimeoutMs: number;
}

/** The id under which a delegation is listed among the calls that the model is waiting for. */
const callIdOf = (delegationId: string): string => `delegation:${delegationId}`;

const FAILED = 'Sorry, something went wrong with that. Could you say it again?';

export class Delegations {
  readonly #core: LeadSession;
  readonly #workOut: WorkOut;
  readonly #turn: Turn;
  readonly #transcript: VoiceTranscript;
  readonly #timeoutMs: number;
  readonly #settleTimeoutMs: number;
  readonly #patience: Watchdog;
  readonly #known = new RecentIds();
  /** The delegations that are waiting for the user's words. */
  readonly #waiting = new Set<string>();
  readonly #working = new Map<string, AbortController>();
  /** The addressees of the user's words since the last interpreted delegation. */
  #wereForLead = false;
  #wereForSubagent = false;

  constructor(
    core: LeadSession,
    workOut: WorkOut,
    turn: Turn,
    transcript: VoiceTranscript,
    { settleTimeoutMs, responseTimeoutMs }: DelegationsOptions,
  ) {
    this.#core = core;
    this.#workOut = workOut;
    this.#turn = turn;
    this.#transcript = transcript;
    this.#timeoutMs = responseTimeoutMs;
    this.#settleTimeoutMs = settleTimeoutMs;
    this.#patience = new Watchdog(core.host.environment, () => this.#begin());
  }

  /** Whether a delegation is in progress, during which the model receives no other request. */
  get areUnderWay(): boolean {
    return this.#turn.chart.context.calls.some(({ of }) => of === 'delegation');
  }

  created(delegationId: string): void {
    if (!this.#known.add(delegationId)) return;
    this.#waiting.add(delegationId);
    const callId = callIdOf(delegationId);
    this.#turn.chart.send({ type: 'call.made', callId, responseId: '', of: 'delegation' });
    if (this.#turn.userHasFloor) this.#patience.watch(this.#settleTimeoutMs);
    else this.#begin();
  }

  /** Records that the user's words were addressed to the lead agent or (`false`) to a subagent. */
  understood(wereForLead: boolean): void {
    if (wereForLead) this.#wereForLead = true;
    else this.#wereForSubagent = true;
  }

  /** Interprets the waiting delegations if the user does not have the floor. */
  wordsSettled(): void {
    if (this.#waiting.size > 0 && !this.#turn.userHasFloor) this.#begin();
  }

  /** Handles the loss of the connection. Returns whether the user is still waiting for a delegated task. */
  lost(): boolean {
    const wereOpen = this.areUnderWay;
    this.stop();
    this.#known.clear();
    return wereOpen;
  }

  /** Cancels all delegations. */
  stop(): void {
    this.#patience.stop();
    for (const delegationId of [...this.#waiting, ...this.#working.keys()])
      this.#settled(delegationId);
    this.#waiting.clear();
    const reason = new CancelledError('the delegation is no longer needed');
    for (const controller of this.#working.values()) controller.abort(reason);
    this.#working.clear();
  }

  #begin(): void {
    this.#patience.stop();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    // DELEGATIONS-2
    const areSubagents = this.#wereForSubagent && !this.#wereForLead;
    // DELEGATIONS-5
    const areWorkedOut =
      this.#working.size > 0 && !this.#wereForLead && this.#transcript.unfinished === '';
    for (const [index, delegationId] of waiting.entries()) {
      if (areSubagents || areWorkedOut || index > 0) {
        this.#settled(delegationId);
        this.#accept(delegationId, []);
      } else void this.#work(delegationId);
    }
    this.#wereForLead = this.#wereForSubagent = false;
    this.#turn.next();
  }

  async #work(delegationId: string): Promise<void> {
    const { environment } = this.#core.host;
    const controller = new AbortController();
    const { signal } = controller;
    this.#working.set(delegationId, controller);
    const cancel = environment.scheduler.schedule(() => {
      const message = `The model did not interpret the delegation within ${this.#timeoutMs} ms`;
      controller.abort(new ProviderError('DELEGATION_TIMEOUT', message, { retryable: true }));
    }, this.#timeoutMs);
    const isWanted = (): boolean => this.#working.get(delegationId) === controller;
    try {
      const unfinished = this.#transcript.unfinished;
      const { calls, text } = await this.#workOut({ unfinished, signal });
      if (!isWanted()) return;
      if (calls.length > 0) this.#accept(delegationId, calls);
      else if (text.trim() !== '') this.#answer(delegationId, text.trim());
      else
        throw new ProviderError('NO_ANSWER', 'The model neither called a tool nor said anything');
    } catch (error) {
      if (!isWanted()) return;
      this.#core.reportError(error, 'delegation');
      this.#answer(delegationId, FAILED);
    } finally {
      cancel();
      if (isWanted()) {
        this.#working.delete(delegationId);
        this.#settled(delegationId);
        this.#turn.next();
      }
    }
  }

  #settled(delegationId: string): void {
    this.#turn.chart.send({ type: 'call.dropped', callId: callIdOf(delegationId) });
  }

  #accept(delegationId: string, calls: readonly Omit<MadeCall, 'callId'>[]): void {
    const { ids } = this.#core.host.environment;
    const made = calls.map((call) => ({ ...call, callId: ids.next('call') }));
    const callIds = made.map(({ callId }) => callId);
    this.#turn.send({ type: 'delegation.accept', delegationId, callIds });
    for (const call of made) this.#turn.called(call);
  }

  #answer(delegationId: string, text: string): void {
    this.#turn.send({ type: 'delegation.answer', delegationId, text });
  }
}

const INSTRUCTIONS =
  'The conversation is spoken: a voice assistant talks to the user, and has handed over to you ' +
  'what they want done. You do not talk to the user yourself. Call the tools that their latest ' +
  'request needs, all of them at once; do not call again what was called for it already. If no ' +
  'tool is needed, or something is missing, answer in one or two sentences that can be said aloud.';

const REQUEST = note(
  sentence`Do now what the user's last words ask for; the voice assistant tells them your answer.`,
);

/** Runs one step of `model` on the conversation, with the current lead agent's tools. */
export function withModel(core: LeadSession, model: LanguageModel): WorkOut {
  return async ({ unfinished, signal }) => {
    const { records, agents, host } = core;
    // The voice model's transport determines the role of notes, but providers of text models reject a system message
    // within a conversation.
    const notes = core.notes.writtenAs('user');
    const { agentName } = records;
    const { ids, clock } = host.environment;
    const told = records.conversation.toModelMessages({ notes, user: core.user });
    const messages: ModelMessage[] = [
      ...withTurnContext(told, turnContext(core), notes),
      ...(unfinished === '' ? [] : [{ role: 'user' as const, content: notes.guard(unfinished) }]),
      { role: 'user', content: notes.text(REQUEST, 'delegation request') },
    ];
    const account = modelCallsOf(core);
    const beganAt = clock.now();
    const instructions = `${agents.instructionsOf(agentName)}\n\n${INSTRUCTIONS}`;
    const { calls, text, finish, usage } = await runModelStep({
      caller: { name: agentName, journal: account },
      model,
      instructions,
      messages,
      tools: {
        modelTools: modelToolsOf(agents.standingToolsOf(agentName)),
        execution: new Map(),
      },
      signal,
      ids,
      clock,
    }).catch((error: unknown) => {
      throw modelError(error);
    });
    account.used(
      useOf(model, agentName, usage, { instructions, messages, written: text }, beganAt),
    );
    // The calls in a truncated response may be incomplete and must not be run.
    if (finish === 'length')
      throw new ProviderError('INCOMPLETE', 'The answer reached the output limit of the model');
    return {
      text,
      calls: calls.map(({ toolName: name, input }) => ({
        name,
        arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
      })),
    };
  };
}

const NOTHING_TO_CALL = 'That is something I cannot do from here.';

/** Interprets a delegation without a model, by passing the user's words to the agent's only tool. */
export function withoutModel(core: LeadSession): WorkOut {
  return ({ unfinished }) => {
    const { records, agents } = core;
    const said =
      records.utteranceId === null ? undefined : records.conversation.get(records.utteranceId);
    const heard = said?.role === 'user' ? said.text : '';
    const task = [heard, unfinished].filter((words) => words !== '').join(' ');
    const [tool] = agents.toolsOf(records.agentName).values();
    const field = tool && taskField(tool.jsonSchema);
    if (!tool || field === null || field === undefined || task === '')
      return Promise.resolve({ calls: [], text: NOTHING_TO_CALL });
    const call = { name: tool.definition.name, arguments: JSON.stringify({ [field]: task }) };
    return Promise.resolve({ calls: [call], text: '' });
  };
}

/**
 * Checks that delegations of these agents can be interpreted without a model.
 * @throws {ConfigurationError} `NO_DELEGATION_MODEL` if a model is needed; the message names the tools that require it
 */
export function checkDelegable(agents: readonly LeadAgent[]): void {
  for (const { name, tools = [] } of agents) {
    const [only] = tools;
    const count = tools.length + (agents.length > 1 ? 1 : 0);
    if (count === 0) continue;
    const schema = only && knownJsonSchema(wrapSchema(only.parameters, `tool "${only.name}"`));
    if (count === 1 && schema && taskField(schema) !== null) continue;
    const names = tools.map((tool) => `"${tool.name}"`).join(', ') || 'transfers';
    throw new ConfigurationError(
      'NO_DELEGATION_MODEL',
      `Expected \`delegationModel\` (or \`model\`) to be a language model, got undefined: this voice ` +
        `model delegates without naming a tool, and agent "${name}" has more to choose from than ` +
        `one tool that takes one required string (${names})`,
    );
  }
}

/** Returns the name of the tool's only required property if it is a string; null otherwise. */
function taskField(schema: Readonly<Record<string, unknown>> | null): string | null {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, { readonly type?: unknown; readonly enum?: unknown }>>;
    required?: readonly string[];
  };
  const [name, ...others] = required;
  if (name === undefined || others.length > 0) return null;
  const { type, enum: choices } = properties[name] ?? {};
  return type === 'string' && choices === undefined ? name : null;
}
