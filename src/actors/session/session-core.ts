// A session without its voice: what voice and text have in common. It takes in what
// arrives, wires the unit, the books, the subagents and the lead agent to each other,
// and is the face that an app talks to.
//
// Owns:     the unit of the session and everything that lives as long as it does.
// Does not: decide what happens next (machines), carry effects out (session-effects),
//           speak (lead), hold sockets or audio.

import { CancelledError, ConfigurationError, OffstageError } from '../../errors.ts';
import { type DeliveryPriority, type Failure, type Stamped } from '../../machines/index.ts';
import { Delegation } from '../delegation/delegation.ts';
import { Upkeep } from '../context/upkeep.ts';
import { OutcomeDesk } from '../outcomes/outcome-desk.ts';
import type { MemoryFact } from '../ports/memory-store.ts';
import type { Message, UnitEvent } from '../runtime/commit-unit.ts';
import { callSafely, createHost, type Host } from '../runtime/host.ts';
import { servicesOf } from '../service/for-session.ts';
import type { SessionServices } from '../service/session-services.ts';
import type { AnswerReceipt, SubagentView } from '../session-views.ts';
import type { GivenAnswer } from '../subagent/ask-user.ts';
import type { SubagentConfig } from '../subagent/config.ts';
import { sessionLimits } from '../supervisor/limits.ts';
import { Books } from './books.ts';
import { checkedConversation } from './conversation-options.ts';
import { consolidationOf } from './consolidation.ts';
import type { SessionHooks } from './hooks.ts';
import type { Lead } from './lead.ts';
import { Leads } from './leads.ts';
import type { SpeakProgress } from './progress-pace.ts';
import { Projection } from './projection.ts';
import { noticePrompt } from './prompts.ts';
import type { SessionInputEvent } from './records.ts';
import { SessionEffects } from './session-effects.ts';
import { checkSessionOptions, type CoreOptions } from './session-options.ts';
import { SessionScope } from './session-scope.ts';
import type { EffectsSession } from './session-parts.ts';
import { SessionUnit } from './session-unit.ts';
import { TopicBook } from './subagent-messages.ts';
import { transferRequested } from './transfer.ts';
import { answerGiven, userSaid } from './user-input.ts';

const INLINE_TOOL_TIMEOUT_MS = 30_000;

export class SessionCore implements EffectsSession {
  readonly id: string;
  readonly host: Host;
  readonly books: Books;
  readonly projection: Projection;
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly ofCalls: SessionScope;
  readonly services: SessionServices;
  readonly lead: Lead;
  readonly leads: Leads;
  readonly upkeep: Upkeep;
  readonly hasVoice: boolean;
  readonly startedAt: number;
  readonly hooks: SessionHooks;
  readonly topics = new TopicBook();
  readonly #options: CoreOptions;
  readonly #effects: SessionEffects;
  readonly #receipts = new Map<string, (receipt: AnswerReceipt) => void>();
  readonly #saying = new Map<string, () => void>();
  #clients = 0;
  #started: Promise<void> | null = null;
  #settleStart: { resolve: () => void; reject: (error: Error) => void } | null = null;
  #closed: (() => void)[] = [];

  /** @throws {ConfigurationError} for options that cannot work; nothing is opened yet. */
  constructor(options: CoreOptions) {
    const { runtime, hooks = {} } = options;
    const configs = options.subagentConfigs ?? {};
    checkSessionOptions(options);
    const limits = sessionLimits(options.limits);
    const consolidation = consolidationOf(options.consolidation ?? 'off');
    this.#options = options;
    this.hooks = hooks;
    this.hasVoice = options.hasVoice;
    this.id = options.sessionId ?? runtime.environment.ids.next('ses');
    this.host = createHost({
      environment: runtime.environment,
      journal: runtime.journal,
      inspect: runtime.inspect,
      onError: (error, where) => this.reportError(error, where),
      onIgnored: (unit, actor, { type }) => hooks.onIgnored?.({ unit, actor, type }),
    });
    this.startedAt = runtime.environment.clock.now();
    this.projection = new Projection(runtime.environment);
    const { memory, memoryScope = 'default', model } = options;
    const hasMemory = memory !== undefined;
    const conversation = checkedConversation(options.conversation, { model, hasMemory });
    this.books = new Books(options.agents[0]?.name ?? '', conversation.limits, options.promptStyle);
    this.leads = new Leads(this, options.agents, configs);
    this.upkeep = new Upkeep(
      {
        id: this.id,
        host: this.host,
        memory: memory ? { store: memory, scope: memoryScope } : null,
        conversation: () => this.books.conversation,
        summarised: (summary, covers) =>
          this.tell('conversation', { type: 'conversation.summarised', summary, covers }),
        remembered: (facts) => this.projection.emit({ type: 'memory.distilled', facts }),
      },
      conversation.upkeep,
    );
    runtime.supervisor.open(this.id, limits);
    this.lead = options.makeLead(this);
    const facts = memory && { memory, scope: memoryScope };
    const outcomes = new OutcomeDesk(this.host, options);
    const scope = { model, facts, outcomes, news: () => this.#effects.news };
    this.ofCalls = new SessionScope(this, { ...scope, hasCalls: true });
    this.delegation = new Delegation({
      id: this.id,
      supervisor: runtime.supervisor,
      limits,
      budget: options.budget,
      ports: new SessionScope(this, { ...scope, hasCalls: false }),
      graceMs: options.closeGraceMs ?? 5000,
    });
    this.services = servicesOf(this, options.services ?? []);
    this.#effects = new SessionEffects(this);
    this.unit = new SessionUnit(
      this.host,
      {
        id: this.id,
        session: {
          maxReconnects: options.maxReconnects,
          ...(options.connectTimeoutMs && { connectTimeoutMs: options.connectTimeoutMs }),
          ...(options.transferTimeoutMs && { transferTimeoutMs: options.transferTimeoutMs }),
          settleTimeoutMs: options.settleTimeoutMs,
          closeGraceMs: options.closeGraceMs ?? 5000,
          detachGraceMs: options.detachGraceMs ?? null,
        },
        outbox: { ...options.outbox, capacity: limits.maxDeliveries },
        toolTimeoutMs: (name) =>
          this.leads.toolsOf(this.books.agentName).get(name)?.definition.timeout ??
          INLINE_TOOL_TIMEOUT_MS,
        canInterrupt: options.canInterrupt,
        batches: consolidation && {
          ...consolidation,
          includes: (name) => this.#isConsolidated(name),
        },
      },
      {
        fold: (actor, event) => this.#fold(actor, event),
        release: (posted) => this.#effects.release(posted),
        crashed: (error) => this.#effects.crashed(error),
      },
    );
  }

  get configs(): Readonly<Record<string, SubagentConfig>> {
    return this.#options.subagentConfigs ?? {};
  }

  get speakProgress(): SpeakProgress {
    return this.#options.speakProgress ?? 'off';
  }

  get showsRawResults(): boolean {
    return this.#options.promptStyle === 'turn';
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
      await this.leads.prepare();
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
  async close(): Promise<void> {
    await Promise.all([this.#end(), this.upkeep.end()]);
  }

  #end(): Promise<void> {
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
    this.leads.transfers.begin();
    this.services.start();
    this.#settleStart.resolve();
    this.#settleStart = null;
    callSafely(this.host, 'hook onSessionStart', () =>
      this.hooks.onSessionStart?.({ sessionId: this.id }),
    );
  }

  /** The last thing that happens in a session. */
  ended(error: Failure | null): void {
    this.unit.stop();
    this.leads.transfers.stop();
    void this.upkeep.end();
    this.delegation.dispose();
    this.supervisor.close(this.id);
    // What belongs together may go on under the same id after an error, not after a close.
    if (!error)
      callSafely(this.host, 'working memory', () => this.#options.workingMemory?.forget(this.id));
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
    this.topics.complete();
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
    else this.receive(`delivery:${deliveryId}`, { type: 'delivery.shown', deliveryId });
  }

  dismiss(deliveryId: string): void {
    if (!this.books.questions.has(deliveryId))
      this.receive(`delivery:${deliveryId}`, { type: 'delivery.dismissed', deliveryId });
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

  /** To the clients. */
  sendJson(data: unknown): void {
    this.projection.emit({ type: 'client.json', data });
  }

  /** The newest facts that are remembered of the user. */
  async facts(limit: number): Promise<readonly MemoryFact[]> {
    const { memory, memoryScope: scope = 'default' } = this.#options;
    return memory ? memory.facts({ scope, limit }) : [];
  }

  turnEnded(): void {
    this.leads.turnEnded();
    this.upkeep.turnEnded();
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
    if (event.type === 'user.said')
      return userSaid(this.books, this.unit, carried as never, this.leads.agent.language);
    if (event.type === 'transfer.requested') return transferRequested(this.unit, carried as never);
    if (event.type === 'directive.set')
      this.unit.unit.post('directives', { kind: 'do', name: 'changed', params: undefined });
    if (event.type === 'conversation.summarised')
      this.unit.unit.post('conversation', { kind: 'do', name: 'summarised', params: carried });
    if (event.type === 'answer.given') return answerGiven(this.books, this.unit, carried as never);
    return this.books.fold(actor, carried);
  }

  /** A background tool whose author has nothing against it. */
  #isConsolidated(toolName: string): boolean {
    const definition = this.leads.toolsOf(this.books.agentName).get(toolName)?.definition;
    return (
      definition?.execution === 'background' &&
      (definition.consolidate ?? this.configs[toolName]?.consolidate ?? true)
    );
  }
}
