// The ports of those subagents of a session that work for the user through the lead agent.
//
// Owns:     which results are held back, expected, or reported by a tool (ONCE-1, ONCE-2). Passes on all other reports
//           from the subagents.
// Does not: run subagents (subagents/), or decide when a delivery is made (outbox).
//
// Invariants
//   ONCE-1. A result that ends a lead agent's wait (`await_subagent`), or arrives during it, is not reported by a
//       delivery. The text that follows the tool's result reports it. If no text follows, or the user interrupts it, a
//       delivery reports the result (P4). Until the outcome is clear, neither of them reports it. The entry with the
//       tool's output names the result. A process that takes over therefore either gives the reply that is due or posts
//       the delivery, but never both.
//   ONCE-2. If the lead agent reads a pending result (`check_subagent`, `running_task`), the result's delivery waits
//       for the reply. The delivery is dismissed when the whole reply has been delivered. After an interruption, a
//       failure or an empty reply, the outbox offers the delivery. If the app reads the result, the delivery is
//       dismissed.

import type { LanguageModel } from 'ai';
import { requestMessage } from '../../subagents/messages.ts';
import type { Giver, ScopeNews, ScopePorts } from '../../subagents/scope-ports.ts';
import { THE_LEAD, type PendingInput, type SpawnRequest } from '../../contracts/service-types.ts';
import { assembleContextSnapshot, type FactSource } from '../../context/context-snapshot.ts';
import { isMessage, type MessageItem } from '../../conversation/items.ts';
import { memoryTime, type OutcomeProcessor } from '../../../results/outcome-processor.ts';
import { providerOf } from '../../../values/echo.ts';
import { ownValue } from '../../../values/own-value.ts';
import { raceTime } from '../../../values/race-abort.ts';
import { callSafely, type Host } from '../../runtime/host.ts';
import { isPaused, type DeliveryView, type SubagentView } from '../../contracts/session-views.ts';
import type { SubagentConfig, SubagentDefinition } from '../../contracts/config.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import { briefing, type Briefing } from '../../subagent/instance.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import { inheritedTools, reportInDoubt } from '../effects/call-effects.ts';
import { RUNNING_TASK } from '../lead/work.ts';
import { postNotice, type NewNotice } from '../effects/notices.ts';
import type { SubagentReports } from '../effects/subagent-reports.ts';
import { nameOfSpawned, saidOf, toldResult } from '../state/synthetic-turns.ts';
import type { SubagentTask } from '../../contracts/task.ts';
import {
  CANCELLED,
  deliveryAbout,
  subjectOf,
  type ReturnedResult,
} from '../../contracts/records.ts';
import type { EffectsSession } from '../effects/effects-session.ts';
import { floorOf } from '../../../machines/index.ts';

/** A result that has not been delivered yet. */
interface Held {
  readonly deliveryId: string;
  /** Turns the result into a delivery. */
  post(): void;
  /** Records that the lead agent's reply has reported the result. */
  known(): void;
}

/** A result that tools have returned to the lead agent. */
interface Told extends Held, ReturnedResult {
  /** The number of turns that the lead agent had completed when the result was returned. */
  readonly turns: number;
}

export class SessionScope implements ScopePorts {
  readonly name: string;
  readonly host: Host;
  readonly terms = {};
  readonly giver: Giver;
  readonly outcomes: OutcomeProcessor;
  readonly #session: EffectsSession;
  readonly #facts: FactSource | undefined;
  readonly #subagentReports: () => SubagentReports;
  /** Whether the subagents work for background calls and services, which handle the results themselves. */
  readonly #hasCalls: boolean;
  readonly #beside: SessionScope | undefined;
  /** The ids of deliveries that were posted and have not been withdrawn. The outbox may not have them yet. */
  readonly #posted = new Set<string>();
  /** Results that the lead agent is waiting for and that its wait will return. */
  readonly #held = new Map<string, Held>();
  /** Results that were returned but may not have been reported yet (ONCE-1). */
  readonly #told = new Map<string, Told>();
  /**
   * The subagents whose results are missing but may be reported together with others. The value is true if their
   * siblings wait for them.
   */
  readonly #expected = new Map<string, boolean>();
  /** The number of turns that the previous process completed, if a reply has been owed since then; otherwise -1. */
  #turnsBefore = -1;

  constructor(
    session: EffectsSession,
    options: {
      readonly model: LanguageModel | undefined;
      /** Facts about the user. */
      readonly facts: FactSource | undefined;
      readonly outcomes: OutcomeProcessor;
      readonly subagentReports: () => SubagentReports;
      readonly hasCalls: boolean;
      /** The session's other scope, which this scope notifies when the lead agent starts or ends a wait. */
      readonly beside?: SessionScope;
    },
  ) {
    this.host = session.host;
    this.giver = {
      model: options.model,
      get agentName() {
        return session.records.agentName;
      },
      get notes() {
        return session.notes;
      },
      tools: (agentName) => inheritedTools(session, agentName ?? session.records.agentName),
    };
    this.outcomes = options.outcomes;
    this.#facts = options.facts;
    this.#session = session;
    this.#subagentReports = options.subagentReports;
    this.#hasCalls = options.hasCalls;
    this.#beside = options.beside;
    this.name = options.hasCalls ? 'calls' : 'lead';
  }

  configOf(toolName: string, name: string): SubagentConfig | undefined {
    const { configs, services } = this.#session;
    return ownValue(configs, toolName) ?? services.agentOf(name);
  }

  endOf(id: string, callId: string | null) {
    const { records, unit } = this.#session;
    const outcome = (callId !== null && records.calls.get(callId)?.outcome) || null;
    if (!this.#hasCalls) {
      const deliveryId = deliveryAbout(id);
      const { pending } = unit.outbox.snapshot.context;
      const isPending =
        pending.some((item) => item.deliveryId === deliveryId) || unit.batchOf(deliveryId) !== null;
      return { isKnown: records.knowsResult(deliveryId), isPending, outcome };
    }
    const state = callId === null ? undefined : unit.calls.stateOf(callId)?.value;
    const isKnown = state !== 'acknowledged' && state !== 'delegated';
    return { isKnown, isPending: state === 'settled', outcome };
  }

  get lasting() {
    return this.#session.records.lasting;
  }

  originOf(callId: string) {
    const { request, requestedBy } = this.#session.records.calls.get(callId) ?? {};
    return { request: request ?? null, requester: requestedBy ?? null };
  }

  tell(news: ScopeNews): void {
    const session = this.#session;
    switch (news.type) {
      case 'question.asked':
        return session.receive('questions', { type: news.type, ...news.question });
      case 'question.withdrawn': {
        const { requestId, reason = CANCELLED } = news;
        return session.receive(`question:${requestId}`, { type: 'question.withdraw', reason });
      }
      case 'input.requested':
        return this.#inputRequested(news.view, news.request);
      // Withdraws the notice even if the lead agent answers the request in the response that was to deliver the notice.
      case 'input.settled':
        return this.#takeBack(deliveryAbout(news.requestId), ['pending', 'offered']);
      case 'progressed':
        return this.#subagentReports().progressed(news.view, news.note);
      case 'changed':
        return this.#changed(news.view);
      case 'stepped':
        return this.#subagentReports().stepped(news.view, news.report);
      case 'call.in_doubt': {
        const { id: subagentId, name: subagentName } = news.view;
        return reportInDoubt(session, { subagentId, subagentName, ...news.call });
      }
      case 'ended':
        return this.#ended(news);
      case 'delivered':
        return this.#delivered(news.id);
      case 'wait.began':
        return this.#waitBegan();
      case 'wait.ended':
        return this.#waitEnded();
      case 'lacks':
    }
  }

  async brief(
    own: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
  ): Promise<Briefing> {
    const { context: mode, instructions } = own;
    // The conversation at the time of the handoff, before the facts are read.
    const { records, user } = this.#session;
    const { conversation } = records;
    const model = own.relay ? undefined : (own.model ?? this.giver.model);
    const now = this.host.environment.clock.now();
    const input = {
      mode,
      task,
      instructions,
      conversation,
      user,
      ...(notes && { notes }),
      ...(model && { reader: { provider: providerOf(model), now } }),
    };
    const snapshot = await raceTime(
      () => assembleContextSnapshot(input, this.#facts),
      memoryTime(this.host.environment),
    ).catch((error: unknown) => {
      this.host.report(error, 'memory');
      return assembleContextSnapshot(input);
    });
    const isFork = mode === 'fork' && messages !== undefined;
    return briefing(own, isFork ? { ...snapshot, conversation: messages } : snapshot, notes);
  }

  /** Informs the lead agent of a request in the next pause. The lead agent answers it with a tool. */
  #inputRequested(view: SubagentView, request: PendingInput): void {
    const { requestId, question, dueAt, askedAt } = request;
    this.#post(deliveryAbout(requestId), {
      subagentId: view.id,
      priority: 'high',
      label: 'SUBAGENT REQUEST',
      text: question,
      prompt: requestMessage(view, request),
      ttlMs: dueAt - askedAt,
    });
  }

  #changed(view: SubagentView): void {
    const isNew = this.#session.projection.subagent(view.id) === undefined;
    this.#subagentReports().changed(view);
    if (isNew) this.#expect(view);
    this.#heed(view.id, view.state);
    if (isNew)
      callSafely(this.host, 'hook onSubagentStart', () =>
        this.#session.hooks.onSubagentStart?.(view),
      );
  }

  #ended({
    view,
    outcome,
    isDelivered,
    request,
  }: Extract<ScopeNews, { readonly type: 'ended' }>): void {
    const isOfCall = this.#hasCalls && view.parentId === null;
    this.#subagentReports().ended(view, outcome, isOfCall ? view.callId : null, request);
    if (view.parentId === null) this.#reported(view, outcome, isDelivered);
  }

  #reported(view: SubagentView, outcome: Outcome, isDelivered: boolean): void {
    if (this.#hasCalls) this.#callEnded(view, outcome, isDelivered);
    else this.#spawnedEnded(view, outcome, isDelivered);
  }

  #callEnded(view: SubagentView, outcome: Outcome, isDelivered: boolean): void {
    const { id, callId } = view;
    if (callId === null) {
      this.#session.tree.delivered(id);
      return;
    }
    const { records } = this.#session;
    // `running_task` has read how the subagent ended, and its answer reports that.
    const isKnown =
      isDelivered &&
      this.#runningCalls.some((running) => records.calls.get(running)?.name === RUNNING_TASK);
    const held: Held = {
      deliveryId: callId,
      post: () => this.#subagentReports().settleCall(view, outcome, callId, isKnown),
      known: () =>
        this.#session.receive(`call:${callId}`, { type: 'subagent.ended', outcome, known: true }),
    };
    if (outcome.status === 'cancelled') held.post();
    else this.#tellOnce(id, held, isDelivered);
  }

  #spawnedEnded(view: SubagentView, outcome: Outcome, isDelivered: boolean): void {
    const { records, unit } = this.#session;
    const deliveryId = deliveryAbout(view.id);
    const isToldAsStopped = unit.batches.hasStopped(unit.batches.expecting(deliveryId));
    if (!isDelivered && outcome.status === 'cancelled' && !isToldAsStopped) {
      this.#leave(view.id);
      return;
    }
    const post = (): void => {
      const told = toldResult(nameOfSpawned(view), view.id, outcome);
      this.#post(deliveryId, {
        subagentId: view.id,
        kind: 'result',
        label: view.name,
        text: saidOf(told, outcome),
        prompt: records.words.one(told),
        ...(this.#expected.delete(view.id) ? { result: told } : {}),
      });
    };
    const known = (): void => this.#session.receive('results', { type: 'result.told', deliveryId });
    if (!isDelivered || this.#runningCalls.length > 0 || records.returned.has(deliveryId))
      this.#tellOnce(view.id, { deliveryId, post, known }, isDelivered);
  }

  #tellOnce(id: string, held: Held, isDelivered: boolean): void {
    const { records, tree } = this.#session;
    if (isDelivered || records.returned.has(held.deliveryId)) this.#returned(id, held);
    // A wait for several subagents continues, and the lead agent reads this result when the wait ends.
    else if (tree.waits.isAwaitedByLead(id)) this.#held.set(id, held);
    // No tool is waiting for the result now, so the lead agent receives it in the next pause.
    else held.post();
  }

  /** Handles a result that one of the lead agent's tools or, if no tool is running, the app has read. */
  #returned(id: string, held: Held): void {
    const { records } = this.#session;
    const { facts, returned } = records;
    const before = returned.get(held.deliveryId);
    const callIds = before?.callIds ?? this.#runningCalls;
    const turns = before ? this.#turnsBefore : facts.turns;
    // If a detached tool has returned the result, the delivery for its call reports it.
    const isOfDelivery = callIds.some((callId) => records.calls.get(callId)?.detachedAt);
    // The user may not have heard the previous process's reply, so the delivery reports the result again (P4).
    const isUnsure = before && !isOfDelivery && this.#replyAfter(callIds);
    if (callIds.length === 0 || isUnsure) held.post();
    else this.#told.set(id, { ...held, callIds, turns });
  }

  /** Returns the results that were read while this call was running. */
  returnedTo(callId: string): readonly ReturnedResult[] {
    return [...this.#told.values()]
      .filter(({ callIds }) => callIds.includes(callId))
      .map(({ deliveryId, callIds }) => ({ deliveryId, callIds }));
  }

  /** Called when the floor may be free. Decides whether returned results were reported (ONCE-1). */
  settleTold(): void {
    if (this.#told.size === 0) return;
    const { records, unit } = this.#session;
    if (floorOf(unit.session.snapshot) !== 'nobody') return;
    for (const [id, told] of this.#told) {
      const isAnswered = !told.callIds.some((callId) => unit.calls.has(callId));
      if (!isAnswered || records.facts.turns <= told.turns) continue;
      this.#told.delete(id);
      // An uninterrupted reply has reported the results.
      const { text = '', interrupted = false } = this.#replyAfter(told.callIds) ?? {};
      if (text.trim() !== '' && !interrupted) told.known();
      else told.post();
    }
  }

  /** Returns the first message by the lead agent after the results of these calls. */
  #replyAfter(callIds: readonly string[]): MessageItem | undefined {
    const { items } = this.#session.records.conversation;
    const read = items.findLastIndex(
      (item) => item.role === 'tool_result' && callIds.includes(item.callId),
    );
    const said = items.slice(read + 1).filter(isMessage);
    return read < 0 ? undefined : said.find(({ role }) => role === 'assistant');
  }

  /** The lead agent's inline tools that are running. */
  get #runningCalls(): readonly string[] {
    const { unit } = this.#session;
    return unit.calls.ids.filter((callId) => unit.runOf(callId) !== null);
  }

  #waitBegan(): void {
    for (const id of this.#expected.keys()) this.#heed(id);
  }

  /** Posts the results that the wait did not return, so that they are reported in the next pause. */
  #waitEnded(): void {
    this.#beside?.tell({ type: 'wait.ended' });
    this.#waitBegan();
    for (const [id, { post }] of this.#held) {
      if (this.#session.tree.waits.isAwaitedByLead(id)) continue;
      this.#held.delete(id);
      post();
    }
  }

  /** Handles a result that the lead agent has read or been told about. */
  #delivered(id: string): void {
    const callId = this.#session.projection.subagent(id)?.callId ?? null;
    const deliveryId = this.#hasCalls ? callId : deliveryAbout(id);
    const held = this.#held.get(id);
    this.#held.delete(id);
    if (held) this.#returned(id, held);
    this.#leave(id);
    if (held || deliveryId === null) return;
    if (this.#runningCalls.length === 0) this.#takeBack(deliveryId);
    else if (this.#isPending(deliveryId) && !this.#told.has(id)) {
      this.#session.receive(`delivery:${deliveryId}`, { type: 'delivery.read', deliveryId });
      this.#returned(id, this.#readOf(deliveryId));
    }
  }

  /**
   * Returns the two possible outcomes for a pending delivery that the lead agent has read. The lead agent's reply
   * determines which one applies.
   */
  #readOf(deliveryId: string): Held {
    return {
      deliveryId,
      post: () =>
        this.#session.receive(`delivery:${deliveryId}`, { type: 'delivery.unread', deliveryId }),
      known: () => this.#takeBack(deliveryId),
    };
  }

  /**
   * Resumes with the results that the lead agent had already read when the previous process ended. `owesReply`: whether
   * this process still has to produce the reply that reports the results.
   */
  recovered(owesReply: boolean): void {
    const { records, tree, projection, unit } = this.#session;
    this.#turnsBefore = owesReply ? records.facts.turns : -1;
    const read = new Set(
      unit.outbox.snapshot.context.pending.flatMap((item) => (item.read ? [item.deliveryId] : [])),
    );
    for (const deliveryId of new Set([...records.returned.keys(), ...read])) {
      const ofCall = records.calls.get(deliveryId)?.subagentId;
      if ((ofCall !== undefined) !== this.#hasCalls) continue;
      if (read.has(deliveryId)) {
        // If the tool's output has no entry, the lead agent has not read the result.
        const held = this.#readOf(deliveryId);
        if (records.returned.has(deliveryId)) this.#returned(ofCall ?? subjectOf(deliveryId), held);
        else held.post();
        continue;
      }
      const view = projection.subagent(ofCall ?? subjectOf(deliveryId));
      // After a restart, the tree reports ended subagents again, except those that a snapshot contains.
      const found = view && tree.check(view.id, THE_LEAD);
      const outcome = found?.ok ? found.report.outcome : null;
      if (view && outcome) this.#reported(view, outcome, true);
    }
  }

  /**
   * After a crash, lets batches wait only for the subagents that continue. `live`: the ids of the live subagents, and
   * of those that are about to be reported as ended.
   */
  expectOnly(live: ReadonlySet<string>): void {
    const { batches, calls } = this.#session.unit;
    for (const batchId of batches.ids)
      for (const member of batches.contextOf(batchId)?.working ?? []) {
        if (calls.has(member)) continue;
        const id = subjectOf(member);
        this.#expected.set(id, batches.contextOf(batchId)?.asking.includes(member) !== true);
        if (!live.has(id)) this.#leave(id);
      }
  }

  /** Lets the results of one request's subagents wait for each other, so that a single reply reports them ([R34]). */
  #expect({ id, parentId, callId }: SubagentView): void {
    const { unit, records, tree } = this.#session;
    const isToldToUser = !this.#hasCalls && parentId === null;
    if (!isToldToUser || callId === null || !unit.inputs.batches) return;
    const { consolidate = true, delivery = 'when_idle' } = tree.get(id)?.definition ?? {};
    const { requestId = null } = records.calls.get(callId) ?? {};
    if (requestId === null || !consolidate || delivery !== 'when_idle') return;
    this.#expected.set(id, true);
    const deliveryId = deliveryAbout(id);
    this.#session.receive('results', { type: 'result.expected', deliveryId, requestId });
  }

  /**
   * Updates whether a subagent's siblings wait for it. They do not wait while the subagent sleeps or waits for the
   * user, or while the lead agent waits for the subagent.
   */
  #heed(id: string, state = this.#session.projection.subagent(id)?.state): void {
    const before = this.#expected.get(id);
    if (before === undefined) return;
    const holds = !isPaused(state) && !this.#session.tree.waits.isAwaited(id);
    if (holds === before) return;
    this.#expected.set(id, holds);
    this.#tellBatch(id, holds ? 'batch.resumed' : 'batch.asking');
  }

  /** Removes a member that has no result, or whose result the lead agent already has. */
  #leave(id: string): void {
    if (this.#expected.delete(id)) this.#tellBatch(id, 'batch.left');
  }

  #tellBatch(id: string, type: 'batch.asking' | 'batch.resumed' | 'batch.left'): void {
    const callId = deliveryAbout(id);
    this.#session.receive(`member:${callId}`, { type, callId });
  }

  /** Posts a notice whose id is derived from the subagent, so that a repeated post after a crash is recognised. */
  #post(deliveryId: string, notice: NewNotice): void {
    this.#posted.add(deliveryId);
    postNotice(this.#session, { ...notice, deliveryId });
  }

  /** Withdraws a pending delivery if its content is outdated or has already been reported. */
  #takeBack(deliveryId: string, from?: readonly DeliveryView['state'][]): void {
    const isPending = this.#isPending(deliveryId, from);
    this.#posted.delete(deliveryId);
    if (isPending)
      this.#session.receive(`delivery:${deliveryId}`, { type: 'delivery.dismissed', deliveryId });
  }

  /** Returns whether a delivery is in one of these states, or will be once the outbox has handled its post. */
  #isPending(deliveryId: string, from: readonly DeliveryView['state'][] = ['pending']): boolean {
    const view = this.#session.projection.delivery(deliveryId);
    return view ? from.includes(view.state) : this.#posted.has(deliveryId);
  }
}
