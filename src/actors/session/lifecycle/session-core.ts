// The common core of voice and text sessions. Accepts events, connects the unit, the records, the subagents and the
// lead agent, and implements the API for apps.
//
// Owns:     the session's unit, and all components that exist for as long as the session.
// Does not: start or end the session (session-life), decide on next actions (machines), execute effects
//           (session-effects), speak (lead), or hold sockets or audio.

import type { Shown } from '../../runtime/hosting.ts';
import { DEFAULT_GRACE_MS } from '../../subagents/subagent-host.ts';
import { codeOf, isA, messageOf } from '../../../values/errors.ts';
import type { Failure, OutboxInput } from '../../../machines/index.ts';
import { SubagentTree } from '../../subagents/subagent-tree.ts';
import type { FactSource } from '../../context/context-snapshot.ts';
import { Upkeep } from '../../context/upkeep.ts';
import { OutcomeProcessor } from '../../../results/outcome-processor.ts';
import { NoteMarks } from '../../notes/note-marks.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import { callSafely, createHost, type Host } from '../../runtime/host.ts';
import { UnfoldableEntry } from '../../runtime/quarantine.ts';
import { ScopeJournal, ScopeSnapshots } from '../../runtime/scope-journal.ts';
import { checkNeeds, checkToolNames } from '../../subagent/define-subagent.ts';
import { servicesOf } from '../effects/session-effects.ts';
import type { SessionServices } from '../../services/session-services.ts';
import { mayAnswer, type QuarantinedEntry } from '../../contracts/session-views.ts';
import type { BudgetLimits, SpeakProgress, SubagentConfig } from '../../contracts/config.ts';
import type { ReturnedResult } from '../../contracts/records.ts';
import type { VouchedFor } from '../../contracts/identity.ts';
import type { RaiseResult } from '../../contracts/service-types.ts';
import { refusal } from '../../subagents/refusal.ts';
import { argument } from '../../subagents/service-arguments.ts';
import { sessionLimits } from '../../admission/limits.ts';
import { Awaited } from '../lead/awaited.ts';
import { SessionRecords } from '../state/session-records.ts';
import type { SessionHooks } from '../lead/hooks.ts';
import { modelCallsOf } from '../lead/lead-usage.ts';
import { reachOf, withQuiet, type Reach } from '../effects/reach.ts';
import { schedulesOf, withNextTime, type Schedules } from '../effects/schedules.ts';
import type { Speaker } from '../lead/speaker.ts';
import { LeadAgents, type LeadSession } from '../lead/lead-agents.ts';
import { checkedNotice, postNotice, type NoticeOptions } from '../effects/notices.ts';
import { Projection } from '../state/projection.ts';
import type {
  Address,
  EventFor,
  Received,
  SessionMessage,
} from '../../contracts/session-protocol.ts';
import { clientCallsOf, type ClientCalls } from '../effects/client-calls.ts';
import { SessionEffects } from '../effects/session-effects.ts';
import { checkedConversation, type SessionOptions } from './session-options.ts';
import { SessionLife, type HostedSession } from './session-life.ts';
import { SessionScope } from './session-scope.ts';
import { DEFAULT_TOOL_TIMEOUT_MS, SessionUnit, SNAPSHOTS } from '../unit/session-unit.ts';
import { UserInput } from '../questions/user-input.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';
import { withVerdict } from '../questions/settle-question.ts';
import { withMeaning, withReading } from '../questions/user-words.ts';
import { consolidationOf } from '../state/batches.ts';
import { foldSessionEvent, snapshotOf } from './session-journal.ts';
import type { Runtime } from '../../admission/runtime.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';
import type { SessionInputs } from '../unit/session-entries.ts';
import { reporter } from '../../../values/reporter.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { readTraceparent } from '../../../values/traceparent.ts';

/** The options that voice and text sessions add to the app's options. */
interface CoreOptions<Lead extends Speaker> extends SessionOptions {
  readonly runtime: Runtime;
  readonly outbox: Omit<OutboxInput, 'capacity'>;
  readonly settleTimeoutMs: number;
  readonly maxReconnects: number;
  /** @defaultValue 30000 */
  readonly connectTimeoutMs?: number;
  /** @defaultValue 30000 */
  readonly transferTimeoutMs?: number;
  /** Whether the lead agent's speech can be stopped in mid-sentence. */
  readonly canInterrupt: boolean;
  /**
   * Whether the lead model cannot leave a call open. Every background call is then answered at once, and its result is
   * reported as a notice. @defaultValue false
   */
  readonly acknowledgesCalls?: boolean;
  /** Whether questions are heard (voice) and not only shown (text). */
  readonly hasVoice: boolean;
  /** Whether the lead model can settle a question with a tool. @defaultValue true */
  readonly leadSettles?: boolean;
  readonly makeLead: (session: LeadSession) => Lead;
  /** The form in which results reach the lead model. @defaultValue 'notice' */
  readonly promptStyle?: PromptStyle;
}

/** A client's call has its own deadline, so it ends before the lead agent's call. */
const CLIENT_GRACE_MS = 60_000;

/** The events without which a session would never end. */
const ENDS: ReadonlySet<string> = new Set(['session.close', 'deadline.close']);

function failureOf(error: unknown): Failure {
  const code = codeOf(error);
  return { code, message: messageOf(error), retryable: false };
}

export class SessionCore<Lead extends Speaker = Speaker> implements HostedSession {
  readonly id: string;
  readonly host: Host;
  readonly records: SessionRecords;
  readonly notes: NoteMarks;
  readonly projection: Projection;
  /** The app's waits. */
  readonly awaited: Awaited;
  readonly unit: SessionUnit;
  readonly tree: SubagentTree;
  readonly ofCalls: SessionScope;
  /** The ports of the subagents that the lead agent spawned with a tool. */
  readonly ofLead: SessionScope;
  readonly services: SessionServices;
  /** This session's view of the journal. */
  readonly journal: ScopeJournal;
  readonly snapshots: ScopeSnapshots;
  /** The start and the end of the session in this process. */
  readonly life: SessionLife;
  readonly lead: Lead;
  readonly agents: LeadAgents;
  readonly upkeep: Upkeep;
  /** The input from the user and the clients. */
  readonly userInput: UserInput;
  readonly startedAt: number;
  readonly hooks: SessionHooks;
  /** Entries that this process could not fold. */
  readonly quarantined: QuarantinedEntry[] = [];
  readonly #options: CoreOptions<Lead>;
  /** The facts about the user. */
  readonly #facts: FactSource | undefined;
  readonly #effects: SessionEffects;
  /** The calls that clients execute. */
  readonly clientCalls: ClientCalls;
  readonly schedules: Schedules;
  readonly reach: Reach;
  readonly #tellOfError: Host['report'];

  /** @throws {ConfigurationError} if an option is invalid, in which case nothing is opened. */
  constructor(options: CoreOptions<Lead>) {
    const { runtime, hooks = {} } = options;
    const configs = options.subagentConfigs ?? {};
    const limits = sessionLimits(options.limits);
    const consolidation = consolidationOf(options.consolidation ?? 'off');
    this.#options = options;
    this.hooks = hooks;
    this.#tellOfError = reporter(
      hooks.onError && ((error, where) => hooks.onError?.(error, where)),
    );
    this.id = options.sessionId ?? runtime.environment.ids.next('ses');
    this.journal = new ScopeJournal(runtime.journal, {
      rested: () => {
        this.snapshots.entryKept();
        this.awaited.settleWaits();
      },
      // SESSION-LIFE-4
      isTakenOver: () => this.unit.unit.disposed && runtime.supervisor.isOpen(this.id),
    });
    this.host = createHost({
      environment: runtime.environment,
      journal: this.journal,
      jobs: runtime.jobs,
      price: runtime.price,
      inspect: runtime.inspect,
      onUnfoldable: runtime.onUnfoldable,
      onError: (error, where) => this.reportError(error, where),
      onIgnored: (unit, actor, { type }) => hooks.onIgnored?.({ unit, actor, type }),
    });
    this.host.actors.root = this.id;
    this.startedAt = runtime.environment.clock.now();
    // Otherwise, the subscriber that threw would receive an event about its own error.
    this.projection = new Projection(this.host, this.#tellOfError);
    this.awaited = new Awaited(this);
    this.userInput = new UserInput(this, { isHeard: options.hasVoice });
    const { memory, memoryScope: scope = 'default', model } = options;
    this.#facts = memory && { memory, scope };
    const hasMemory = memory !== undefined;
    const conversation = checkedConversation(options.conversation, { model, hasMemory });
    this.records = new SessionRecords(
      options.agents?.[0]?.name ?? '',
      conversation.limits,
      options.promptStyle,
    );
    this.notes = new NoteMarks(runtime.environment.ids.next('mark'), options.systemAs);
    const { services = [], agents } = options;
    this.agents = new LeadAgents(this, agents, configs, {
      hasServices: services.length > 0,
      hasVoice: options.hasVoice,
      steering: options.steering,
      reminders: options.reminders,
    });
    const calls = modelCallsOf(this);
    this.upkeep = new Upkeep(
      {
        id: this.id,
        host: this.host,
        facts: this.#facts,
        conversation: () => this.records.conversation,
        calls,
        summarised: (summary, covers) =>
          this.receive('conversation', { type: 'conversation.summarised', summary, covers }),
        remembered: (facts) => this.projection.emit({ type: 'memory.distilled', facts }),
      },
      conversation.upkeep,
    );
    this.lead = options.makeLead(this);
    const outcomes = new OutcomeProcessor(this.host, options, calls);
    const served = {
      model,
      facts: this.#facts,
      outcomes,
      subagentReports: () => this.#effects.subagentReports,
    };
    this.ofCalls = new SessionScope(this, { ...served, hasCalls: true });
    this.ofLead = new SessionScope(this, { ...served, hasCalls: false, beside: this.ofCalls });
    this.tree = new SubagentTree({
      id: this.id,
      supervisor: runtime.supervisor,
      limits,
      budget: options.budget,
      ports: this.ofLead,
      graceMs: options.closeGraceMs ?? DEFAULT_GRACE_MS,
    });
    this.services = servicesOf(this, services);
    const needed = [
      ...Object.entries(configs).map(
        ([key, config]) => [`subagentConfigs.${key}`, config] as const,
      ),
      ...services.map(({ agent }, n) => [`services[${n}].agent`, agent] as const),
    ];
    for (const [path, config] of needed) {
      checkNeeds(path, config, { model, jobs: runtime.jobs, price: runtime.price });
      checkToolNames(path, config);
    }
    this.#effects = new SessionEffects(this);
    this.clientCalls = this.host.clientCalls = clientCallsOf(this);
    this.life = new SessionLife(this, this.#effects);
    this.unit = new SessionUnit(
      this.host,
      {
        id: this.id,
        ...unitInputs(options),
        outbox: { ...options.outbox, capacity: limits.maxDeliveries },
        batches: consolidation,
        books: {
          agentName: this.records.agentName,
          limits: conversation.limits,
          promptStyle: options.promptStyle ?? 'notice',
          runSlots: limits.maxConcurrentPerSession,
          ...(options.budget && { budget: withoutUndefined(options.budget) }),
        },
      },
      {
        draft: this.records.draft,
        fold: (received) => foldSessionEvent(this.records, this.unit, received),
        complete: (taken) => this.#completed(taken),
        release: (posted) => this.#effects.release(posted),
        crashed: (error) => this.#effects.crashed(error),
        ignored: (event, error) => {
          this.userInput.ignored(event, error);
          // If such an event failed, the session would never end, and a caller of `close` would wait forever.
          if (error && ENDS.has(event.type)) this.#effects.crashed(error);
        },
        journalRefused: (error) => {
          this.reportError(error, `journal of session ${this.id}`);
          this.life.leave(failureOf(error));
          // Another process may be able to continue the session, or is already doing so.
          callSafely(this.host, 'journal', () => this.journal.release(this.id));
        },
      },
    );
    const { maxSchedules } = limits;
    this.schedules = schedulesOf(this, { maxSchedules, timeZone: this.timeZone });
    this.reach = reachOf(this, this.#effects, options.reach, this.timeZone);
    this.host.actors.machines = () => this.#machines();
    const { id, host } = this;
    this.snapshots = new ScopeSnapshots(
      {
        id,
        host,
        unit: this.unit.unit,
        actor: SNAPSHOTS,
        made: (isAsleep) => snapshotOf(this, isAsleep),
      },
      this.journal,
      runtime.snapshots,
    );
    // Must be the last step, so that invalid options have thrown before it.
    runtime.supervisor.open(this.id, limits);
  }

  *#machines(): Iterable<Shown> {
    yield* this.unit.machines();
    yield* this.lead.machines?.() ?? [];
    yield* this.tree.machines();
    yield* this.services.machines();
  }

  get configs(): Readonly<Record<string, SubagentConfig>> {
    return this.#options.subagentConfigs ?? {};
  }

  /** The trace context of the request that opened the session. */
  get traceparent(): string | undefined {
    return readTraceparent(this.#options.traceparent);
  }

  /** The identity of the session's user, or undefined if there is none. */
  get user(): string | undefined {
    return this.#options.user;
  }

  get timeZone(): string {
    return this.#options.timeZone ?? 'UTC';
  }

  get consentModel() {
    return this.#options.consentModel;
  }

  get workingMemory() {
    return this.#options.workingMemory;
  }

  get speakProgress(): SpeakProgress {
    return this.#options.speakProgress ?? 'off';
  }

  get acknowledgesCalls(): boolean {
    return this.#options.acknowledgesCalls === true;
  }

  get showsRawResults(): boolean {
    return this.#options.promptStyle === 'turn';
  }

  get supervisor() {
    return this.#options.runtime.supervisor;
  }

  /** Puts an event into the session's mailbox. */
  receive<A extends Address>(to: A, event: EventFor<A>): void {
    const terms = this.#termsOf(event);
    this.unit.unit.receive(to, terms ? { ...event, ...terms } : event);
  }

  /**
   * Posts a notice for the user that does not come from a subagent. Returns the `deliveryId`.
   * @throws {ConfigurationError} `INVALID_NOTICE`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  notifyBackground(text: string, options?: NoticeOptions): string {
    this.unit.unit.checkRoom();
    return postNotice(this, checkedNotice(text, options));
  }

  /**
   * Raises the limits in the session's own budget to new totals.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  raiseBudget(given: BudgetLimits, { by }: VouchedFor): RaiseResult {
    const limits = argument('limits', 'raiseBudget(null, limits)', given);
    const { connection } = this.projection;
    if (connection === 'created' || connection === 'closed' || connection === 'suspended')
      return refusal('INVALID_STATE', `The budget was not raised: the session is ${connection}`);
    this.unit.unit.checkRoom();
    const raised = this.tree.raiseOwnBudget(limits);
    if (raised.ok)
      this.receive('budget', {
        type: 'budget.raised',
        limits,
        ...(by === undefined ? {} : { by }),
      });
    return raised;
  }

  /** Returns the newest remembered facts about the user. */
  async facts(limit: number): Promise<readonly MemoryFact[]> {
    const { memory, scope } = this.#facts ?? {};
    return memory && scope ? memory.facts({ scope, limit }) : [];
  }

  returnedTo(callId: string): readonly ReturnedResult[] | null {
    const returned = [...this.ofCalls.returnedTo(callId), ...this.ofLead.returnedTo(callId)];
    return returned.length > 0 ? returned : null;
  }

  settleTold(): void {
    this.ofCalls.settleTold();
    this.ofLead.settleTold();
  }

  reportError(error: unknown, where: string): void {
    this.#tellOfError(error, where);
    const code = codeOf(error);
    const message = `${where}: ${messageOf(error)}`;
    if (!isA(error, UnfoldableEntry)) {
      this.projection.emit({ type: 'error.reported', code, message });
      return;
    }
    this.quarantined.push(error.entry);
    this.projection.emit({ type: 'error.reported', code, message, entry: error.entry });
  }

  /** Returns the settings that an event's entry contains, so that its effects do not depend on later code. */
  #termsOf(event: SessionMessage['event']): object | null {
    if (event.type === 'user.said') {
      const { language } = this.agents.current;
      return { ...this.#byOf(event), ...(language === undefined ? {} : { language }) };
    }
    if (event.type === 'answer.given') return this.#byOf(event);
    if (event.type !== 'tool.called') return null;
    const tool = this.agents.toolOf(event.agentName ?? this.records.agentName, event.name);
    return {
      timeoutMs: tool?.client
        ? tool.client.timeoutMs + CLIENT_GRACE_MS
        : (tool?.definition.timeout ?? DEFAULT_TOOL_TIMEOUT_MS),
      isConsolidated: this.#isConsolidated(tool?.definition),
    };
  }

  /** Adds the facts about the current state that are recorded in an event's entry. */
  #completed({ event, id }: Received): Received['event'] {
    const { records, unit } = this;
    const { leadSettles = true, consentModel, user } = this.#options;
    const hasModel = consentModel !== undefined;
    if (event.type === 'user.said')
      return withReading(records, unit, event, { leadSettles, hasModel });
    if (event.type === 'reading.ended') return withMeaning(records, unit, id, event, leadSettles);
    if (event.type === 'deadline.schedule') return withNextTime(records, id, event);
    if (event.type === 'deadline.reach')
      return withQuiet(this.#options.reach, this.timeZone, event);
    if (event.type === 'question.asked' && user !== undefined && !mayAnswer(event, user))
      return { ...event, beside: true };
    return event.type === 'question.settled' ? withVerdict(records, unit, event) : event;
  }

  /** Returns the session's user, to whom input and answers without another identity belong. */
  #byOf({ by }: { readonly by?: string }): { readonly by?: string } {
    const { user } = this.#options;
    return user === undefined || by !== undefined ? {} : { by: user };
  }

  /**
   * Returns whether a background call's result may be reported together with others. The author decides (default: yes).
   */
  #isConsolidated(tool: ToolDefinition | undefined): boolean {
    if (tool?.execution !== 'background') return false;
    const config = this.configs[tool.name];
    const delivery = tool.delivery ?? config?.delivery ?? 'when_idle';
    return delivery === 'when_idle' && (tool.consolidate ?? config?.consolidate ?? true);
  }
}

/** Returns the inputs of the session's machines. */
function unitInputs({
  maxReconnects,
  connectTimeoutMs,
  transferTimeoutMs,
  settleTimeoutMs,
  closeGraceMs = DEFAULT_GRACE_MS,
  detachGraceMs = null,
  canInterrupt,
}: CoreOptions<Speaker>): Pick<SessionInputs, 'session' | 'canInterrupt'> {
  return {
    session: {
      maxReconnects,
      ...(connectTimeoutMs && { connectTimeoutMs }),
      ...(transferTimeoutMs && { transferTimeoutMs }),
      settleTimeoutMs,
      closeGraceMs,
      detachGraceMs,
    },
    canInterrupt,
  };
}
