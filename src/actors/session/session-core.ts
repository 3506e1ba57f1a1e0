// A session without its voice: what voice and text have in common. It takes in what
// arrives, wires the unit, the books, the subagents and the lead agent to each other,
// and is the face that an app talks to.
//
// Owns:     the unit of the session and everything that lives as long as it does.
// Does not: decide what happens next (machines), carry effects out (session-effects),
//           speak (lead), hold sockets or audio.

import type { LanguageModel } from 'ai';
import { CancelledError, ConfigurationError, OffstageError } from '../../errors.ts';
import {
  type DeliveryPriority,
  type Failure,
  type OutboxInput,
  type Stamped,
} from '../../machines/index.ts';
import { assembleContextSnapshot } from '../context/context-snapshot.ts';
import type { MemoryStore } from '../ports/memory-store.ts';
import type { Message, UnitEvent } from '../runtime/commit-unit.ts';
import { callSafely, createHost, type Host } from '../runtime/host.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { AnswerReceipt, SubagentView } from '../session-views.ts';
import type { GivenAnswer } from '../subagent/ask-user.ts';
import {
  checkSubagentConfig,
  type SubagentConfig,
  type SubagentDefinition,
} from '../subagent/config.ts';
import { briefing, toolsOf, type Briefing } from '../subagent/instance.ts';
import type { SubagentTask } from '../subagent/subagent.ts';
import { sessionLimits, type SessionLimits } from '../supervisor/limits.ts';
import { Books } from './books.ts';
import { Delegation } from './delegation.ts';
import type { SessionHooks } from './hooks.ts';
import type { Lead } from './lead.ts';
import { checkLeadTools, prepareLeadTools, type LeadTool, type MainAgent } from './lead-tools.ts';
import { Projection } from './projection.ts';
import { noticePrompt } from './prompts.ts';
import type { SessionInputEvent } from './records.ts';
import { SessionEffects } from './session-effects.ts';
import type { EffectsSession, LeadSession } from './session-parts.ts';
import { SessionUnit } from './session-unit.ts';
import { answerGiven, userSaid } from './user-input.ts';

/** What every session takes, whatever it speaks with. */
export interface SessionOptions {
  /** The agent that talks to the user. One, for now: the first. */
  readonly agents: readonly [MainAgent, ...MainAgent[]];
  /** How background tools are done, by the name of the tool. */
  readonly subagentConfigs?: Readonly<Record<string, SubagentConfig>>;
  /** The model of the subagents that have none of their own. */
  readonly model?: LanguageModel;
  /** Facts about the user, for the subagents' context. */
  readonly memory?: MemoryStore;
  /** Whose facts: a user's id. @defaultValue 'default' */
  readonly memoryScope?: string;
  readonly limits?: Partial<SessionLimits>;
  readonly hooks?: SessionHooks;
  /** Names the session in the journal and the inspector. @defaultValue a new id */
  readonly sessionId?: string;
  /** Subagents may take so long to stop on `close()`, in milliseconds. @defaultValue 5000 */
  readonly closeGraceMs?: number;
  /** Open questions are withdrawn when nobody was there for so long, in milliseconds. @defaultValue null: never */
  readonly detachGraceMs?: number | null;
}

export interface CoreOptions extends SessionOptions {
  readonly runtime: Runtime;
  readonly outbox: Omit<OutboxInput, 'capacity'>;
  readonly settleTimeoutMs: number;
  readonly maxReconnects: number;
  /** Can what the lead agent says be stopped in mid-sentence? */
  readonly canInterrupt: boolean;
  /** Is a question heard (voice), or only shown (text)? */
  readonly hasVoice: boolean;
  readonly makeLead: (session: LeadSession) => Lead;
}

const INLINE_TOOL_TIMEOUT_MS = 30_000;

export class SessionCore implements EffectsSession {
  readonly id: string;
  readonly agent: MainAgent;
  readonly host: Host;
  readonly books = new Books();
  readonly projection: Projection;
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly lead: Lead;
  readonly hasVoice: boolean;
  readonly startedAt: number;
  readonly hooks: SessionHooks;
  readonly #options: CoreOptions;
  readonly #effects: SessionEffects;
  readonly #receipts = new Map<string, (receipt: AnswerReceipt) => void>();
  readonly #saying = new Map<string, () => void>();
  #tools: ReadonlyMap<string, LeadTool> = new Map();
  #clients = 0;
  #started: Promise<void> | null = null;
  #settleStart: { resolve: () => void; reject: (error: Error) => void } | null = null;
  #closed: (() => void)[] = [];

  /** @throws {ConfigurationError} for options that cannot work; nothing is opened yet. */
  constructor(options: CoreOptions) {
    const { runtime, hooks = {} } = options;
    const [agent] = options.agents;
    if (!agent)
      throw new ConfigurationError(
        'INVALID_OPTION',
        'Expected `agents` to have one agent, got none',
      );
    const configs = options.subagentConfigs ?? {};
    checkLeadTools(agent, configs);
    for (const [name, config] of Object.entries(configs))
      toolsOf(checkSubagentConfig(config, `subagentConfigs.${name}`));
    const limits = sessionLimits(options.limits);
    this.#options = options;
    this.agent = agent;
    this.hooks = hooks;
    this.hasVoice = options.hasVoice;
    this.id = options.sessionId ?? runtime.environment.ids.next('ses');
    this.host = createHost({
      environment: runtime.environment,
      journal: runtime.journal,
      inspect: runtime.inspect,
      onError: (error, where) => this.reportError(error, where),
    });
    this.startedAt = runtime.environment.clock.now();
    this.projection = new Projection(runtime.environment);
    runtime.supervisor.open(this.id, limits);
    this.lead = options.makeLead(this);
    this.delegation = new Delegation(this.host, this.id, runtime.supervisor, options.model, {
      brief: (definition, task) => this.#brief(definition, task),
      ask: (question) => this.receive('questions', { type: 'question.asked', ...question }),
      withdraw: (requestId) =>
        this.receive(`question:${requestId}`, { type: 'question.withdraw', reason: 'cancelled' }),
      changed: (subagent) => this.projection.emit({ type: 'subagent.changed', subagent }),
      stepped: (view, report) => this.#effects.stepped(view, report),
      ended: (view, outcome, callId) => this.#effects.subagentEnded(view, outcome, callId),
    });
    this.#effects = new SessionEffects(this);
    this.unit = new SessionUnit(
      this.host,
      {
        id: this.id,
        session: {
          maxReconnects: options.maxReconnects,
          settleTimeoutMs: options.settleTimeoutMs,
          closeGraceMs: options.closeGraceMs ?? 5000,
          detachGraceMs: options.detachGraceMs ?? null,
        },
        outbox: { ...options.outbox, capacity: limits.maxDeliveries },
        toolTimeoutMs: (name) =>
          this.#tools.get(name)?.definition.timeout ?? INLINE_TOOL_TIMEOUT_MS,
        canInterrupt: options.canInterrupt,
      },
      {
        fold: (actor, event) => this.#fold(actor, event),
        release: (posted) => this.#effects.release(posted),
        crashed: (error) => this.#effects.crashed(error),
      },
    );
  }

  get tools(): ReadonlyMap<string, LeadTool> {
    return this.#tools;
  }

  get configs(): Readonly<Record<string, SubagentConfig>> {
    return this.#options.subagentConfigs ?? {};
  }

  get supervisor() {
    return this.#options.runtime.supervisor;
  }

  /** Puts an event into the session's mailbox. */
  receive(actor: string, event: UnitEvent & Record<string, unknown>): void {
    this.unit.unit.receive(actor, event);
  }

  /** Words and new lives, checked by their type. */
  tell(actor: string, event: SessionInputEvent): void {
    this.receive(actor, event as unknown as UnitEvent & Record<string, unknown>);
  }

  /** Resolves when the lead agent is connected; rejects with why it cannot be. */
  start(): Promise<void> {
    this.#started ??= (async () => {
      this.#tools = await prepareLeadTools(this.agent, this.configs);
      // It may have been closed before, or meanwhile: then nothing would settle this any more.
      if (this.projection.connection !== 'created') throw new CancelledError('closed');
      await new Promise<void>((resolve, reject) => {
        this.#settleStart = { resolve, reject };
        this.receive('session', { type: 'session.start' });
      });
    })();
    return this.#started;
  }

  /** Cancels what runs, and resolves when nothing of the session is left. Never rejects. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      if (this.unit.unit.disposed) {
        resolve();
        return;
      }
      this.#closed.push(resolve);
      this.receive('session', { type: 'session.close' });
    });
  }

  /** The connection has changed; called by the effects. */
  connectionChanged(): void {
    const state = this.unit.session.getSnapshot().value.connection;
    const before = this.projection.connection;
    this.projection.emit({ type: 'connection.changed', state });
    if (state !== 'active' || before === 'active' || !this.#settleStart) return;
    this.#settleStart.resolve();
    this.#settleStart = null;
    callSafely(this.host, 'hook onSessionStart', () =>
      this.hooks.onSessionStart?.({ sessionId: this.id }),
    );
  }

  /** The last thing that happens in a session. */
  ended(error: Failure | null): void {
    this.unit.stop();
    this.supervisor.close(this.id);
    for (const receive of this.#receipts.values()) receive({ accepted: false, reason: 'over' });
    this.#receipts.clear();
    for (const resolve of this.#saying.values()) resolve();
    this.#saying.clear();
    this.#settleStart?.reject(
      error ? new OffstageError(error.code, error.message) : new CancelledError('closed'),
    );
    this.#settleStart = null;
    // Whoever was killed could not withdraw its question.
    for (const requestId of this.books.questions.keys()) {
      const question = this.projection.question(requestId);
      if (question)
        this.projection.emit({
          type: 'question.changed',
          question: { ...question, state: 'withdrawn', dueAt: null },
        });
    }
    this.projection.emit({ type: 'session.ended', error });
    this.projection.complete();
    for (const resolve of this.#closed) resolve();
    this.#closed = [];
  }

  get isAttached(): boolean {
    return this.#clients > 0;
  }

  /** Somebody is there. Returns what to call when they leave. */
  attach(): () => void {
    let left = false;
    this.#clients += 1;
    if (this.#clients === 1) this.receive('session', { type: 'client.attached' });
    return () => {
      if (left) return;
      left = true;
      this.#clients -= 1;
      if (this.#clients === 0) this.receive('session', { type: 'client.detached' });
    };
  }

  /** The user answers a question by its button, or in words that name it. */
  answer(requestId: string, answer: GivenAnswer): Promise<AnswerReceipt> {
    const question = this.books.questions.get(requestId);
    if (!question || this.unit.unit.disposed)
      return Promise.resolve({
        accepted: false,
        reason: this.projection.question(requestId) ? 'over' : 'unknown',
      });
    const ticket = this.host.environment.ids.next('ans');
    return new Promise((resolve) => {
      this.#receipts.set(ticket, resolve);
      this.tell('answers', { type: 'answer.given', ticket, requestId, ...answer });
    });
  }

  /** The user typed. Resolves when it was given to a question or to the lead agent. */
  say(text: string): Promise<void> {
    const { connection } = this.projection;
    if (this.unit.unit.disposed || connection === 'created' || connection === 'closing')
      return Promise.reject(
        new ConfigurationError(
          'SESSION_NOT_ACTIVE',
          `Expected the session to be started and not closed, it is ${connection}`,
        ),
      );
    const { clock, ids } = this.host.environment;
    const utteranceId = ids.next('utt');
    return new Promise((resolve) => {
      this.#saying.set(utteranceId, resolve);
      this.tell('user', {
        type: 'user.said',
        utteranceId,
        text,
        channel: 'typing',
        startedAt: clock.now(),
      });
    });
  }

  /** Words of the user have reached whom they were for. */
  said(utteranceId: string): void {
    this.#saying.get(utteranceId)?.();
    this.#saying.delete(utteranceId);
  }

  settleReceipt(ticket: string, receipt: AnswerReceipt): void {
    this.#receipts.get(ticket)?.(receipt);
    this.#receipts.delete(ticket);
  }

  /** The question is on a screen. */
  questionShown(requestId: string): void {
    this.receive(`question:${requestId}`, {
      type: 'question.shown',
      startsClock: !this.hasVoice || this.projection.delivery(requestId)?.card === true,
    });
  }

  /** A result or notice was seen; a question that is seen is not yet answered. */
  shown(deliveryId: string): void {
    if (this.books.questions.has(deliveryId)) this.questionShown(deliveryId);
    else this.receive('outbox', { type: 'delivery.shown', deliveryId });
  }

  dismiss(deliveryId: string): void {
    if (!this.books.questions.has(deliveryId))
      this.receive('outbox', { type: 'delivery.dismissed', deliveryId });
  }

  /** Something that the user shall hear, not from a subagent. Returns its `deliveryId`. */
  notifyBackground(
    text: string,
    options: { priority?: DeliveryPriority; label?: string; ttlMs?: number } = {},
  ): string {
    if (typeof text !== 'string' || text.trim() === '')
      throw new ConfigurationError(
        'INVALID_NOTICE',
        `Expected the text of a notice to have words, got ${JSON.stringify(text)}`,
      );
    const { priority = 'normal', label = 'SUBAGENT UPDATE', ttlMs = null } = options;
    const deliveryId = this.host.environment.ids.next('dlv');
    this.tell('notices', {
      type: 'notice.posted',
      deliveryId,
      kind: 'notice',
      priority,
      label,
      text,
      prompt: noticePrompt(label, text),
      subagentId: null,
      ttlMs,
      reserved: false,
    });
    return deliveryId;
  }

  listSubagents(): readonly SubagentView[] {
    return this.projection.subagents();
  }

  reportError(error: unknown, where: string): void {
    try {
      this.hooks.onError?.(error, where);
    } catch {
      // Whoever listens for errors is not helped by an error of their own.
    }
    const code = error instanceof OffstageError ? error.code : 'INTERNAL';
    const message = `${where}: ${error instanceof Error ? error.message : String(error)}`;
    this.projection.emit({ type: 'error.reported', code, message });
  }

  #fold(actor: string, event: UnitEvent & Stamped): readonly Message[] {
    const carried = event as UnitEvent & Stamped & Record<string, unknown>;
    if (event.type === 'user.said') return userSaid(this.books, this.unit, carried as never);
    if (event.type === 'answer.given') return answerGiven(this.books, this.unit, carried as never);
    return this.books.fold(actor, carried);
  }

  async #brief(definition: SubagentDefinition, task: SubagentTask): Promise<Briefing> {
    const { memory, memoryScope = 'default' } = this.#options;
    const input = {
      mode: definition.context,
      task,
      instructions: definition.instructions,
      // As it is at the moment of the handoff, whatever is said while the facts are looked up.
      conversation: this.books.conversation,
    };
    const snapshot = await assembleContextSnapshot(
      input,
      memory ? { memory, scope: memoryScope } : undefined,
    ).catch((error: unknown) => {
      this.host.report(error, 'memory');
      return assembleContextSnapshot(input);
    });
    return briefing(definition, snapshot);
  }
}
