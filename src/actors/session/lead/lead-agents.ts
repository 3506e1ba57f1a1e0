// The lead agents of a session, with their instructions, their tools, the context for their hooks, and the transfer of
// the conversation between them.
//
//   asked ─▶ onExit ─▶ agent.exited ─▶ transferring ─▶ active ─▶ onEnter ─▶ agent.entered
//     └─ refused: nothing has changed        └─ failed: the former agent leads on, and enters again
//
// Owns:     the agents, their tools (prepared for a model), the running transfer, and the hook calls.
// Does not: determine the current lead agent (records), decide when the connection may change (session machine), or
//           change it (lead driver). A transfer does not affect subagents.
//
// Invariants
//   TRANSFER-1. One transfer runs at a time. If a tool requests another transfer in the meantime, the request is
//       refused. If a hook requests one, that transfer runs after the current one. Only the last such request counts.
//   TRANSFER-2. There is always a lead agent: `agent.exited` and `agent.entered` alternate, and the agent that entered
//       last is the lead agent.
//   TRANSFER-3. Each requester receives one answer, when the transfer has completed or failed. A hook that throws or
//       takes too long is reported and causes no further delay.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { ConfigurationError, OffstageError } from '../../../values/errors.ts';
import type { Failure, Stamped } from '../../../machines/index.ts';
import { leadInstructions, type SetDirective } from '../../contracts/directives.ts';
import type { SubagentConfig } from '../../contracts/config.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';
import type { EventFor, Receiver, SessionMessage } from '../../contracts/session-protocol.ts';
import type { ConversationLog } from '../../conversation/conversation.ts';
import { objectJson, validatedBy } from '../../model/schema.ts';
import { BACKGROUND_CALLS } from '../../conversation/prompts.ts';
import { mayNeedApproval } from '../../model/tools.ts';
import { delegates, reconfigureOf, SOURCE_TOOL, subagentOf } from '../../model/tool-flags.ts';
import { note, wordsOfApp } from '../../notes/note.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import { callSafely, type Host } from '../../runtime/host.ts';
import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import { toolsetAnnotations } from '../../subagents/toolsets/parent-toolset.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { UserInput } from '../questions/user-input.ts';
import type { SessionHooks } from './hooks.ts';
import { checkAgents, type AgentContext, type LeadAgent } from './lead-agent.ts';
import type { Speaker } from './speaker.ts';
import {
  checkLeadTools,
  checkSubagentNames,
  defineTool,
  prepareLeadTools,
  SETTLE_QUESTION,
  type LeadTool,
} from './lead-tools.ts';
import { settleTool } from './settle-tool.ts';
import { REMINDERS, remindersTool, type RemindedSession } from './reminders.ts';
import { RUNNING_TASK, steerTool } from './work.ts';

/** The parts of a session that its lead agents use. */
export interface AgentsSession extends Receiver, RemindedSession {
  readonly id: string;
  readonly host: Host;
  readonly hooks: SessionHooks;
  /** The driver of the current lead agent. */
  readonly lead: Speaker;
  /** The markers that identify genuine notes to the lead model. */
  readonly notes: NoteMarks;
  readonly projection: Projection;
  readonly records: SessionRecords;
  readonly tree: SubagentTree;
  readonly unit: SessionUnit;
  readonly userInput: UserInput;
  /** Returns the newest facts about the user. */
  facts(limit: number): Promise<readonly MemoryFact[]>;
}

/** The parts of a session that the lead agents' drivers use. */
export interface LeadSession extends AgentsSession {
  /** The agents: the current one, and each agent's instructions and tools. */
  readonly agents: LeadAgents;
  /** The app's waits. */
  readonly awaited: {
    /** True while an app is waiting for results. */
    readonly isListening: boolean;
    /** Returns whether an app is waiting for one of these deliveries. */
    wants(deliveryIds: readonly string[]): boolean;
  };
  /** Reports an error that does not end the session. */
  reportError(error: unknown, where: string): void;
  /** The identity of the session's user, or undefined if there is none. */
  readonly user: string | undefined;
}

/** The answer to the model that requested a transfer. */
export type TransferAnswer =
  | { readonly status: 'transferred'; readonly agent_name: string }
  | { readonly error: string; readonly code: string };

/** The facts about the lead agent that a session needs in order to resume. */
export interface Recovery {
  /**
   * Whether the current agent has entered and greeted. Assumed to be true if anything has been said since the agent
   * started to lead.
   */
  readonly hasGreeted: boolean;
  /** Whether the first agent's `onEnter` has run or another agent has taken over since. */
  readonly hasEntered: boolean;
  /** The agent from which the current one took over, if the current one's `onEnter` has not run; otherwise null. */
  readonly takesOverFrom: string | null;
  readonly owesReply: boolean;
}

/** The call that requests a transfer. */
interface TransferCall {
  readonly callId: string;
  /** The calling agent. An agent that no longer leads cannot transfer the conversation. */
  readonly agentName: string;
}

const TRANSFER_TOOL = 'transfer_to_agent';

const HOOK_TIMEOUT_MS = 5000;

/** Longer than the maximum time for a transfer and its hooks, so that the transfer always finishes first. */
const TRANSFER_TIMEOUT_MS = 60_000;

const TURNS_FOR_HOOK = 5;

export class LeadAgents {
  readonly #session: AgentsSession;
  readonly #agents: ReadonlyMap<string, LeadAgent>;
  readonly #definitions: ReadonlyMap<string, readonly ToolDefinition[]>;
  /** Each agent's prepared tools, by name. */
  readonly #tools = new Map<string, ReadonlyMap<string, LeadTool>>();
  /** The tools offered to each agent's model; empty before `prepare`. */
  readonly #standing = new Map<string, readonly LeadTool[]>();
  /** The runtime's tools by name; empty before `prepare`. */
  #ofRuntime: ReadonlyMap<string, LeadTool> = new Map();
  /** The agents whose models can steer background work. */
  readonly #steering: ReadonlySet<string>;
  readonly #mayAskUser: boolean;
  /** Whether the models have the tool `reminders`. */
  readonly #reminds: boolean;
  readonly #hasBackground: boolean;
  /** Whether the models receive notes or have received one. If so, the instructions always explain notes. */
  #getsNotes: boolean;
  /** The latest instructions of each agent whose instructions are a function. */
  readonly #lastWords = new Map<string, string>();
  /** The transfers that the session machine is executing, by id. */
  readonly #transfers = new Map<string, (error: Failure | null) => void>();
  /** Functions that stop waiting for the running hooks. */
  readonly #hooks = new Set<() => void>();
  #hasBegun = false;
  /** Whether an agent is entering or leaving. */
  #isChanging = false;
  /** The agent to which a hook requested a transfer while another transfer was running. */
  #requested: string | null = null;

  /** @throws {ConfigurationError} if an agent's options are invalid. */
  constructor(
    session: AgentsSession,
    agents: readonly LeadAgent[],
    subagents: Readonly<Record<string, unknown>>,
    terms: Readonly<Record<'hasServices' | 'hasVoice', boolean>> & {
      steering: boolean | undefined;
      reminders: boolean | undefined;
    },
  ) {
    const { hasServices, hasVoice, steering, reminders = false } = terms;
    this.#session = session;
    checkAgents(agents);
    const byName = new Map<string, LeadAgent>();
    for (const [index, agent] of agents.entries()) {
      if (byName.has(agent.name))
        throw new ConfigurationError(
          'INVALID_OPTION',
          `agents[${index}]: expected names that are unique, got "${agent.name}" twice`,
        );
      byName.set(agent.name, agent);
    }
    this.#agents = byName;
    this.#reminds = reminders;
    const reserved = [
      SETTLE_QUESTION,
      ...(steering ? [RUNNING_TASK] : []),
      ...(reminders ? [REMINDERS] : []),
    ];
    this.#definitions = new Map(
      agents.map((agent) => {
        const others = agents.filter((other) => other !== agent);
        const own = agent.tools ?? [];
        if (others.length > 0 && own.some(({ name }) => name === TRANSFER_TOOL))
          throw new ConfigurationError(
            'INVALID_TOOL',
            `agent "${agent.name}", tool "${TRANSFER_TOOL}": the runtime reserves this name in a session with several agents`,
          );
        checkLeadTools(agent.name, own, subagents, reserved);
        const tools = others.length > 0 ? [...own, this.#transferTool(others)] : own;
        return [agent.name, tools];
      }),
    );
    checkSubagentNames(agents, subagents);
    const tools = agents.flatMap((agent) => agent.tools ?? []);
    this.#mayAskUser =
      hasServices || Object.values(subagents).some(mayAsk) || tools.some(isSpawning);
    this.#hasBackground = tools.some(
      ({ execution, detach }) => execution === 'background' || detachesIt(detach),
    );
    const hasWork = this.#hasBackground || tools.some(isSpawning);
    this.#steering = new Set(
      agents.flatMap(({ name, tools: own = [] }) =>
        hasWork && (steering ?? !own.some(isSteering)) ? [name] : [],
      ),
    );
    this.#getsNotes = hasVoice || hasServices || hasWork || reminders || byName.size > 1;
  }

  /** Whether the model of the current lead agent has `running_task`. */
  get steers(): boolean {
    return this.#steering.has(this.#session.records.agentName);
  }

  /** The current lead agent. */
  get current(): LeadAgent {
    return this.#agents.get(this.#session.records.agentName) as LeadAgent;
  }

  /**
   * After a crash, checks that the current lead agent still exists. No other agent can continue its work.
   * @throws {ConfigurationError} `UNKNOWN_AGENT`.
   */
  checkLeader(): void {
    const { agentName } = this.#session.records;
    if (this.#agents.has(agentName)) return;
    const known = [...this.#agents.keys()].join(', ');
    throw new ConfigurationError(
      'UNKNOWN_AGENT',
      `The session is led by "${agentName}". Expected it among the agents, got ${known}`,
    );
  }

  /** Prepares all agents' tools before the first connection, so that no transfer has to wait for them. */
  async prepare(): Promise<void> {
    for (const [name, definitions] of this.#definitions)
      this.#tools.set(name, await prepareLeadTools(definitions));
    const session = this.#session;
    this.#ofRuntime = await prepareLeadTools([
      settleTool(session),
      steerTool(session),
      remindersTool(session),
    ]);
    for (const [agentName, tools] of this.#tools) {
      const added = [...this.#ofRuntime.values()].filter(({ definition: { name } }) =>
        name === SETTLE_QUESTION ? this.#mayAskUser : this.#offers(agentName, name),
      );
      this.#standing.set(agentName, [...tools.values(), ...added]);
    }
  }

  /** Returns an agent's tools by name; empty before `prepare`. */
  toolsOf(agentName: string): ReadonlyMap<string, LeadTool> {
    return this.#tools.get(agentName) ?? new Map();
  }

  /** Returns a tool that a model may have called. It belongs to an agent or to the runtime. */
  toolOf(agentName: string, name: string): LeadTool | undefined {
    const own = this.toolsOf(agentName).get(name);
    return own ?? (this.#offers(agentName, name) ? this.#ofRuntime.get(name) : undefined);
  }

  /**
   * Returns whether an agent's model may call a tool of the runtime. Calls to `settle_question` are always answered.
   */
  #offers(agentName: string, name: string): boolean {
    if (name === REMINDERS) return this.#reminds;
    return name !== RUNNING_TASK || this.#steering.has(agentName);
  }

  /**
   * Returns the tools offered to an agent's model, always in the same order. Includes the runtime's tools if a subagent
   * may ask the user or there is background work.
   */
  standingToolsOf(agentName: string): readonly LeadTool[] {
    return this.#standing.get(agentName) ?? [];
  }

  /**
   * Builds a lead agent's instructions from its language, its own instructions and the directives in force. If needed,
   * they also explain how to recognise the runtime's notes and what a background call means.
   */
  instructionsOf(agentName: string): string {
    const { agentName: leader, directives } = this.#session.records;
    const inForce = agentName === leader ? directives : directives.withoutAgents();
    const agent = this.#agents.get(agentName);
    const words = this.#wordsOf(agentName);
    const told = leadInstructions(words, agent?.language, inForce.inForce);
    this.#getsNotes ||= hasNotes(this.#session.records.conversation);
    if (!this.#getsNotes) return told;
    const { recognition } = this.#session.notes;
    const background = this.#hasBackground ? `\n${BACKGROUND_CALLS}` : '';
    return `${told}\n\n${recognition}${background}`.trim();
  }

  readonly setDirective: SetDirective = (key, value, scope = 'session') => {
    this.#session.unit.unit.checkRoom();
    this.#session.records.directives.check(key, value, scope);
    this.#session.receive('directives', { type: 'directive.set', key, value, scope });
  };

  /** Reports that the model has completed its turn, and calls `onTurnCompleted`. */
  turnEnded(): void {
    const { records, host, hooks, projection } = this.#session;
    const { turns: turn, agentName } = records.facts;
    projection.emit({ type: 'turn.ended', turn, agentName });
    callSafely(host, 'hook onTurnEnd', () => hooks.onTurnEnd?.({ turn, agentName }));
    const { onTurnCompleted } = this.current;
    if (!onTurnCompleted) return;
    callSafely(host, `onTurnCompleted of agent "${agentName}"`, () =>
      onTurnCompleted(this.#contextOf(agentName), records.conversation.recentTurns(TURNS_FOR_HOOK)),
    );
  }

  /**
   * Called when the session is connected. After a restart, the agent that led when the previous process ended continues
   * to lead; otherwise, the first agent starts to lead. Later calls have no effect. `before`: the hooks that have
   * already run.
   */
  begin(before: Pick<Recovery, 'hasEntered' | 'hasGreeted' | 'takesOverFrom'> | null): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { lead } = this.#session;
    const agent = this.current;
    const from = before?.takesOverFrom ?? null;
    if (from === null && (!agent.onEnter || before?.hasEntered || before?.hasGreeted)) {
      this.#entered(agent.name, null);
      if (!before?.hasGreeted) lead.begin('greeting');
      return;
    }
    this.#isChanging = true;
    void this.#enter(agent, from).then(() => {
      this.#isChanging = false;
      this.#recordEntered(agent);
      if (!this.#isOver) lead.begin('greeting');
      this.#transferAsRequested();
    });
  }

  /** Whether an agent is entering or leaving, or a request from a hook is waiting. */
  get isTransferring(): boolean {
    return this.#isChanging || this.#requested !== null;
  }

  /**
   * Transfers the lead to the agent `to`. `call`: the call to the transfer tool, or null if the app or a hook requested
   * the transfer. Resolves when the transfer is done, or with the reason why it failed. Never rejects.
   */
  async transfer(to: string, call: TransferCall | null): Promise<TransferAnswer> {
    const session = this.#session;
    const from = this.current;
    const callId = call?.callId ?? null;
    const refusal = this.#refusal(to, call?.agentName ?? from.name);
    const successor = this.#agents.get(to);
    if (refusal || !successor) return this.#failed(from.name, to, callId, refusal ?? unknown(to));
    this.#isChanging = true;
    await this.#exit(from, to);
    const error = this.#isOver ? closed : await this.#handOver(successor);
    if (!this.#isOver) await this.#enter(error ? from : successor, from.name);
    this.#isChanging = false;
    if (error) {
      this.#transferAsRequested();
      return this.#failed(from.name, to, callId, error);
    }
    if (isToEnter(successor)) this.#recordEntered(successor);
    session.projection.emit({ type: 'transfer.completed', from: from.name, to, callId });
    callSafely(session.host, 'hook onTransfer', () =>
      session.hooks.onTransfer?.({ from: from.name, to, error: null }),
    );
    if (!this.#isOver) session.lead.begin('greeting');
    this.#transferAsRequested();
    return { status: 'transferred', agent_name: to };
  }

  /** Settles a transfer that the machine has completed or failed to complete. */
  transferSettled(transferId: string, error: Failure | null): void {
    this.#transfers.get(transferId)?.(error);
    this.#transfers.delete(transferId);
  }

  /** Ends all transfers, because the session has ended. */
  stop(): void {
    this.#requested = null;
    for (const settle of this.#transfers.values()) settle(closed);
    this.#transfers.clear();
    for (const giveUp of this.#hooks) giveUp();
  }

  get #isOver(): boolean {
    return this.#session.unit.unit.disposed;
  }

  #refusal(to: string, by: string): Failure | null {
    const agent = this.current;
    const { projection } = this.#session;
    if (!this.#agents.has(to)) {
      const names = [...this.#agents.keys()].filter((name) => name !== agent.name);
      const others = names.map((name) => `"${name}"`);
      return { ...unknown(to), message: `${unknown(to).message}; expected ${others.join(' or ')}` };
    }
    if (by !== agent.name) return refused('NOT_LEADING', `Agent "${agent.name}" leads already`);
    if (to === agent.name) return refused('ALREADY_LEADING', `Agent "${to}" leads already`);
    if (this.#isChanging)
      return refused('TRANSFER_IN_PROGRESS', 'Another transfer is under way: it comes first');
    if (projection.connection !== 'active') return notActive(projection.connection);
    return null;
  }

  #handOver(successor: LeadAgent): Promise<Failure | null> {
    const transferId = this.#session.host.environment.ids.next('trf');
    return new Promise((resolve) => {
      this.#transfers.set(transferId, resolve);
      this.#session.receive('transfers', {
        type: 'transfer.requested',
        transferId,
        to: successor.name,
        ...(isToEnter(successor) && { enters: true }),
      });
    });
  }

  #failed(from: string, to: string, callId: string | null, error: Failure): TransferAnswer {
    const { host, hooks, projection } = this.#session;
    const { code, message } = error;
    projection.emit({ type: 'transfer.failed', from, to, callId, code, message });
    callSafely(host, 'hook onTransfer', () => hooks.onTransfer?.({ from, to, error }));
    return { error: `${message}. "${this.current.name}" leads on.`, code };
  }

  async #exit(agent: LeadAgent, to: string): Promise<void> {
    const { onExit } = agent;
    if (onExit) await this.#hook('onExit', agent, (context) => onExit(context, to));
    this.#session.projection.emit({ type: 'agent.exited', agentName: agent.name, to });
  }

  async #enter(agent: LeadAgent, from: string | null): Promise<void> {
    const { onEnter } = agent;
    if (onEnter) await this.#hook('onEnter', agent, (context) => onEnter(context, from));
    this.#entered(agent.name, from);
  }

  /** Records that the agent has entered, so that its `onEnter` does not run again in another process. */
  #recordEntered({ name: agentName }: LeadAgent): void {
    this.#session.receive('agents', { type: 'agent.entered', agentName });
  }

  #entered(agentName: string, from: string | null): void {
    this.#session.projection.emit({ type: 'agent.entered', agentName, from });
  }

  #transferAsRequested(): void {
    const to = this.#requested;
    if (to === null || this.#isChanging || this.#isOver) return;
    this.#requested = null;
    void this.transfer(to, null);
  }

  /** Calls a hook of the app and waits for it, up to a time limit (TRANSFER-3). */
  #hook(name: string, agent: LeadAgent, call: (context: AgentContext) => unknown): Promise<void> {
    const { host } = this.#session;
    const where = `${name} of agent "${agent.name}"`;
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#hooks.delete(end);
        resolve();
      };
      const cancel = host.environment.scheduler.schedule(() => {
        const message = `Expected it to be done within ${HOOK_TIMEOUT_MS} ms: it is not waited for`;
        host.report(new OffstageError('HOOK_TIMEOUT', message), where);
        end();
      }, HOOK_TIMEOUT_MS);
      this.#hooks.add(end);
      (async () => call(this.#contextOf(agent.name)))()
        .catch((error: unknown) => host.report(error, where))
        .then(end, end);
    });
  }

  #contextOf(agentName: string): AgentContext {
    const session = this.#session;
    return {
      sessionId: session.id,
      agentName,
      injectSystemMessage: (text) => {
        check('injectSystemMessage(text)', z.string(), text, 'INVALID_ARGUMENT');
        if (!session.unit.unit.disposed)
          session.lead.note(note(wordsOfApp(session.notes.guard(text))), false);
      },
      getRecentTurns: (count = 10) => session.records.conversation.recentTurns(count),
      getMemoryFacts: (limit = 10) => session.facts(limit),
      requestTransfer: (to) => {
        // The transfer starts when the current one is over, never from within the hook.
        this.#requested = check('requestTransfer(agentName)', z.string(), to, 'INVALID_ARGUMENT');
        session.host.environment.scheduler.yieldThen(() => this.#transferAsRequested());
      },
      setDirective: this.setDirective,
      sendJsonToClient: (data) => session.projection.emit({ type: 'client.json', data }),
    };
  }

  #wordsOf(agentName: string): string {
    const instructions = this.#agents.get(agentName)?.instructions ?? '';
    if (typeof instructions === 'string') return instructions;
    callSafely(this.#session.host, `instructions of agent "${agentName}"`, () => {
      const words: unknown = instructions(this.#contextOf(agentName));
      if (typeof words !== 'string')
        throw new ConfigurationError('INVALID_OPTION', `Expected text, got ${typeof words}`);
      this.#lastWords.set(agentName, words);
    });
    return this.#lastWords.get(agentName) ?? '';
  }

  /**
   * Returns the tool that an agent uses to transfer the conversation to another agent. It is an ordinary inline tool
   * whose execution performs the transfer. The call is answered when the transfer has completed or failed.
   */
  #transferTool(others: readonly LeadAgent[]): ToolDefinition {
    const list = others
      .map(({ name, description }) => (description ? `"${name}" (${description})` : `"${name}"`))
      .join(', ');
    return defineTool<{ agent_name: string }>({
      name: TRANSFER_TOOL,
      description:
        `Hand the conversation over to another agent, who talks to the user from then on. ` +
        `Agents: ${list}.`,
      parameters: jsonSchema<{ agent_name: string }>(
        objectJson({ agent_name: { type: 'string', enum: others.map(({ name }) => name) } }, [
          'agent_name',
        ]),
        // The transfer checks whether the agent exists, and its error lists the existing agents.
        { validate: validatedBy(z.object({ agent_name: z.string() })) },
      ),
      timeout: TRANSFER_TIMEOUT_MS,
      detach: { onWords: false },
      execute: ({ agent_name: to }, { callId, agentName }) =>
        this.transfer(to, { callId, agentName }),
    });
  }
}

/** Returns whether the author of a tool has explicitly enabled detaching for its calls. */
function detachesIt(detach: ToolDefinition['detach']): boolean {
  return detach?.afterMs !== undefined || detach?.onWords === true;
}

/** Returns whether a tool spawns subagents. */
function isSpawning(tool: ToolDefinition): boolean {
  return spawns(SOURCE_TOOL in tool ? tool[SOURCE_TOOL] : undefined);
}

/** Returns whether a tool, or a tool that comes with it, steers subagents' work. */
function isSteering(tool: ToolDefinition): boolean {
  if (!(SOURCE_TOOL in tool)) return tool.name === RUNNING_TASK;
  return reconfigureOf(tool[SOURCE_TOOL]) !== null || Object.hasOwn(toolsetAnnotations, tool.name);
}

function spawns(tool: unknown): boolean {
  return reconfigureOf(tool) !== null || delegates(tool) || subagentOf(tool) !== null;
}

/** Returns whether a subagent with this configuration may ask the user a question or for an approval. */
function mayAsk(given: unknown): boolean {
  const config = given as Partial<SubagentConfig>;
  const { interactive, relay, createInstance, tools = {} } = config;
  if (interactive === true || relay || createInstance) return true;
  return mayNeedApproval(config) || Object.values(tools).some(spawns);
}

function hasNotes({ items, summary, evicted }: ConversationLog): boolean {
  return (
    summary !== null ||
    evicted > 0 ||
    items.some((item) => item.role === 'system' || item.role === 'transfer' || 'note' in item)
  );
}

/** Returns whether the agent has a hook or a greeting before its first response. */
function isToEnter({ onEnter, greeting }: LeadAgent): boolean {
  return onEnter !== undefined || greeting !== undefined;
}

/** Passes a request to the machine, which accepts or refuses the transfer. The effects are limited to this unit. */
export function transferRequested(
  unit: SessionUnit,
  requested: EventFor<'transfers'> & Stamped,
): readonly SessionMessage[] {
  const { transferId, to, enters = false, at } = requested;
  const event = { type: 'transfer.started', transferId, to, ...(enters && { enters }) } as const;
  if (unit.accepts('session', { ...event, at })) return [{ actor: 'session', event }];
  unit.post('transfers.refused', { transferId });
  return [];
}

/** Returns the reason why the session cannot transfer the lead now. */
export function notActive(connection: string): Failure {
  return refused('SESSION_NOT_ACTIVE', `The session is ${connection}: expected it to be active`);
}

function refused(code: string, message: string): Failure {
  return { code, message, retryable: code !== 'UNKNOWN_AGENT' };
}

function unknown(to: string): Failure {
  return refused('UNKNOWN_AGENT', `There is no agent "${to}"`);
}

const closed: Failure = {
  code: 'SESSION_CLOSED',
  message: 'The session was closed',
  retryable: false,
};
