// Whom the subagents of a session work for: the user, by way of the lead agent.
//
// Owns:     nothing; it passes on what subagents ask, say and come to.
// Does not: run subagents (delegation/), or decide what is told when (news, outbox).
//
// Invariants
//   ONCE-1. A result that ends a wait of the lead agent (`await_subagent`), or comes during it, is told by the
//           words that follow the result of that tool, and by no delivery. Where none follow, or the user
//           breaks them off, it is told as a delivery (P4). Until that is known it is neither.
//   ONCE-2. A result that waits to be told is taken back when the lead agent looks it up (`check_subagent`).

import type { LanguageModel } from 'ai';
import { requestMessage } from '../../subagents/parent-words.ts';
import type { EndFacts, ScopePorts } from '../../subagents/scope-ports.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../../contracts/service-types.ts';
import { assembleContextSnapshot, type FactSource } from '../../context/context-snapshot.ts';
import type { OutcomeDesk } from '../../../results/outcome-desk.ts';
import { ownValue } from '../../../values/own-value.ts';
import { raceTime } from '../../runtime/race-abort.ts';
import { callSafely, type Host } from '../../runtime/host.ts';
import type { DeliveryView, SubagentView } from '../../contracts/session-views.ts';
import type { SubagentConfig, SubagentDefinition } from '../../contracts/config.ts';
import { briefing, type Briefing } from '../../subagent/instance.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import { memoryTime } from '../../../memory/memory-time.ts';
import { tellDoubt } from '../effects/call-in-doubt.ts';
import { inheritedTools } from '../effects/inherited-tools.ts';
import { postNotice, type NewNotice } from '../delivery/notices.ts';
import type { SubagentNews } from '../effects/subagent-news.ts';
import { nameOfSpawned, saidOf, toldResult } from '../state/synthetic-turns.ts';
import type { CallInDoubt, StepReport, SubagentTask } from '../../contracts/task.ts';
import { deliveryAbout, subjectOf, type AskedQuestion } from '../../contracts/records.ts';
import type { EffectsSession } from '../effects/effects-session.ts';
import { floorOf } from '../../../machines/index.ts';

/** A result that is not told as a delivery yet. */
interface Held {
  /** It is to be told as a delivery. */
  post(): void;
  /** The words of the lead agent have told it. */
  known(): void;
}

/** A result that tools of the lead agent have returned to it. */
interface Told extends Held {
  /** Calls of tools that ran then. */
  readonly callIds: readonly string[];
  /** Turns of the lead agent that were over then. */
  readonly turns: number;
}

export class SessionScope implements ScopePorts {
  readonly name: string;
  readonly host: Host;
  readonly model: LanguageModel | undefined;
  readonly outcomes: OutcomeDesk;
  readonly #session: EffectsSession;
  readonly #facts: FactSource | undefined;
  readonly #news: () => SubagentNews;
  /** They work for background calls and services, which take their results. */
  readonly #hasCalls: boolean;
  readonly #beside: SessionScope | undefined;
  /** What was posted and not taken back; it may not be in the outbox yet. */
  readonly #posted = new Set<string>();
  /** Results that a wait of the lead agent will return to it. */
  readonly #held = new Map<string, Held>();
  /** Results that were returned, where it is not known whether words follow (ONCE-1). */
  readonly #told = new Map<string, Told>();
  /** Those whose results may be told with others, and have not come: do their siblings wait for them? */
  readonly #expected = new Map<string, boolean>();

  constructor(
    session: EffectsSession,
    options: {
      readonly model: LanguageModel | undefined;
      /** About the user. */
      readonly facts: FactSource | undefined;
      readonly outcomes: OutcomeDesk;
      readonly news: () => SubagentNews;
      readonly hasCalls: boolean;
      /** The other scope of the session, which hears of the waits of the lead agent by this one. */
      readonly beside?: SessionScope;
    },
  ) {
    this.host = session.host;
    this.model = options.model;
    this.outcomes = options.outcomes;
    this.#facts = options.facts;
    this.#session = session;
    this.#news = options.news;
    this.#hasCalls = options.hasCalls;
    this.#beside = options.beside;
    this.name = options.hasCalls ? 'calls' : 'lead';
  }

  configOf(toolName: string, name: string): SubagentConfig | undefined {
    const { configs, services } = this.#session;
    return ownValue(configs, toolName) ?? services.agentOf(name);
  }

  knowsEnd(id: string, callId: string | null): boolean {
    const { books, unit } = this.#session;
    if (!this.#hasCalls) return books.deliveries.has(deliveryAbout(id));
    if (callId === null) return true;
    const state = unit.calls.stateOf(callId)?.value;
    return state !== 'acknowledged' && state !== 'delegated';
  }

  outcomeOf(callId: string | null): Outcome | null {
    return (callId !== null && this.#session.books.calls.get(callId)?.outcome) || null;
  }

  inDoubt({ id, name }: SubagentView, call: CallInDoubt): void {
    tellDoubt(this.#session, { subagentId: id, subagentName: name, ...call });
  }

  get agentName(): string {
    return this.#session.books.agentName;
  }

  tools(agentName: string | null = null): Readonly<Record<string, unknown>> {
    return inheritedTools(this.#session, agentName ?? this.agentName);
  }

  requestOf(callId: string): string | null {
    return this.#session.books.calls.get(callId)?.request ?? null;
  }

  requesterOf(callId: string): string | null {
    return this.#session.books.calls.get(callId)?.requestedBy ?? null;
  }

  async brief(
    own: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
  ): Promise<Briefing> {
    const { context: mode, instructions } = own;
    // As it is at the moment of the handoff, whatever is said while the facts are looked up.
    const { conversation } = this.#session.books;
    const input = { mode, task, instructions, conversation };
    const snapshot = await raceTime(
      () => assembleContextSnapshot(input, this.#facts),
      memoryTime(this.host.environment),
    ).catch((error: unknown) => {
      this.host.report(error, 'memory');
      return assembleContextSnapshot(input);
    });
    const isFork = mode === 'fork' && messages !== undefined;
    return briefing(own, isFork ? { ...snapshot, conversation: messages } : snapshot);
  }

  ask(question: AskedQuestion): void {
    const { requestId, subagentId, subagentName, kind, options, timeoutMs } = question;
    const { action, answerableBy } = question;
    this.#session.receive('questions', {
      type: 'question.asked',
      requestId,
      subagentId,
      subagentName,
      kind,
      question: question.question,
      options,
      timeoutMs,
      ...(action === undefined ? {} : { action }),
      ...(answerableBy === undefined ? {} : { answerableBy }),
    });
  }

  withdraw(requestId: string): void {
    this.#session.receive(`question:${requestId}`, {
      type: 'question.withdraw',
      reason: 'cancelled',
    });
  }

  /** The lead agent is told in a pause, as of everything else; it answers with a tool. */
  inputRequested(view: SubagentView, request: PendingInput): void {
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

  /** Also where the lead agent answers it in the very response that was to tell of it. */
  inputSettled(requestId: string): void {
    this.#takeBack(deliveryAbout(requestId), ['pending', 'offered']);
  }

  progressed(view: SubagentView, note: ProgressNote): void {
    this.#news().progressed(view, note);
  }

  changed(view: SubagentView): void {
    const isNew = this.#session.projection.subagent(view.id) === undefined;
    this.#news().changed(view);
    if (isNew) this.#expect(view);
    this.#heed(view.id, view.state);
    if (isNew)
      callSafely(this.host, 'hook onSubagentStart', () =>
        this.#session.hooks.onSubagentStart?.(view),
      );
  }

  stepped(view: SubagentView, report: StepReport): void {
    this.#news().stepped(view, report);
  }

  ended(view: SubagentView, outcome: Outcome, { isDelivered, request }: EndFacts): void {
    const isOfCall = this.#hasCalls && view.parentId === null;
    this.#news().ended(view, outcome, isOfCall ? view.callId : null, request);
    if (isOfCall) this.#callEnded(view, outcome, isDelivered);
    else if (view.parentId === null) this.#spawnedEnded(view, outcome, isDelivered);
  }

  #callEnded(view: SubagentView, outcome: Outcome, isDelivered: boolean): void {
    const { id, callId } = view;
    if (callId === null) {
      this.#session.delegation.delivered(id);
      return;
    }
    const held: Held = {
      post: () => this.#news().settleCall(view, outcome, callId),
      known: () =>
        this.#session.receive(`call:${callId}`, { type: 'subagent.ended', outcome, known: true }),
    };
    if (outcome.status === 'cancelled') held.post();
    else this.#tellOnce(id, held, isDelivered);
  }

  #spawnedEnded(view: SubagentView, outcome: Outcome, isDelivered: boolean): void {
    if (!isDelivered && outcome.status === 'cancelled' && !this.#isToldAsStopped(view.id)) {
      this.#leave(view.id);
      return;
    }
    const post = (): void => {
      const told = toldResult(nameOfSpawned(view), view.id, outcome);
      this.#post(deliveryAbout(view.id), {
        subagentId: view.id,
        kind: 'result',
        label: view.name,
        text: saidOf(told, outcome),
        prompt: this.#session.books.words.one(told),
        ...(this.#expected.delete(view.id) ? { result: told } : {}),
      });
    };
    const held = { post, known: () => {} };
    if (!isDelivered || this.#runningCalls.length > 0) this.#tellOnce(view.id, held, isDelivered);
  }

  #tellOnce(id: string, held: Held, isDelivered: boolean): void {
    if (isDelivered) this.#returned(id, held);
    // A wait for several goes on: the lead agent reads of this one when it ends.
    else if (this.#session.delegation.isAwaitedByLead(id)) this.#held.set(id, held);
    // No tool waits for it at this moment: the lead agent learns of it in the next pause.
    else held.post();
  }

  /** A tool of the lead agent returns it; without one it was the app that looked it up. */
  #returned(id: string, held: Held): void {
    const callIds = this.#runningCalls;
    const { turns } = this.#session.books;
    if (callIds.length === 0) held.post();
    else this.#told.set(id, { ...held, callIds, turns });
  }

  /** The floor may be free: what was returned to the lead agent is told by now, or was not (ONCE-1). */
  settleTold(): void {
    if (this.#told.size === 0) return;
    const { books, unit } = this.#session;
    if (floorOf(unit.session.getSnapshot()) !== 'nobody') return;
    for (const [id, told] of this.#told) {
      const isAnswered = !told.callIds.some((callId) => unit.calls.has(callId));
      if (!isAnswered || books.turns <= told.turns) continue;
      this.#told.delete(id);
      if (this.#isSaidAfter(told.callIds)) told.known();
      else told.post();
    }
  }

  /** Do words that were not broken off follow the results of these calls? */
  #isSaidAfter(callIds: readonly string[]): boolean {
    const { items } = this.#session.books.conversation;
    const read = items.findLastIndex(
      (item) => item.role === 'tool_result' && callIds.includes(item.callId),
    );
    const reply = items.slice(read + 1).find((item) => item.role === 'assistant');
    if (read < 0 || reply?.role !== 'assistant') return false;
    return reply.text.trim() !== '' && reply.interrupted !== true;
  }

  /** Inline tools of the lead agent at work. */
  get #runningCalls(): readonly string[] {
    const { calls } = this.#session.unit;
    return calls.ids.filter((callId) => calls.stateOf(callId)?.value === 'executing');
  }

  waitBegan(): void {
    for (const id of this.#expected.keys()) this.#heed(id);
  }

  /** What the wait has not told is told in a pause. */
  waitEnded(): void {
    this.#beside?.waitEnded();
    this.waitBegan();
    for (const [id, { post }] of this.#held) {
      if (this.#session.delegation.isAwaitedByLead(id)) continue;
      this.#held.delete(id);
      post();
    }
  }

  /** The lead agent has looked it up, or was told. */
  delivered(id: string): void {
    const held = this.#held.get(id);
    this.#held.delete(id);
    if (held) this.#returned(id, held);
    this.#leave(id);
    if (!this.#hasCalls) {
      this.#takeBack(deliveryAbout(id));
      return;
    }
    const callId = this.#session.projection.subagent(id)?.callId ?? null;
    if (callId !== null) this.#takeBack(callId);
  }

  /**
   * After a crash: batches wait for those that go on, and for no others. `goOn`: the ids of those who
   * live, or whose ends are about to be told.
   */
  goesOnFor(goOn: ReadonlySet<string>): void {
    const { batches, calls } = this.#session.unit;
    for (const batchId of batches.ids)
      for (const member of batches.contextOf(batchId)?.working ?? []) {
        if (calls.has(member)) continue;
        const id = subjectOf(member);
        this.#expected.set(id, batches.contextOf(batchId)?.asking.includes(member) !== true);
        if (!goOn.has(id)) this.#leave(id);
      }
  }

  /** Lets the results of subagents that one user request spawned wait for each other: one reply tells them ([R34]). */
  #expect({ id, parentId, callId }: SubagentView): void {
    const { unit, books, delegation } = this.#session;
    const isToldToUser = !this.#hasCalls && parentId === null;
    if (!isToldToUser || callId === null || !unit.inputs.batches) return;
    const { consolidate = true, delivery = 'when_idle' } = delegation.get(id)?.definition ?? {};
    const { requestId = null } = books.calls.get(callId) ?? {};
    if (requestId === null || !consolidate || delivery !== 'when_idle') return;
    this.#expected.set(id, true);
    const deliveryId = deliveryAbout(id);
    this.#session.receive('results', { type: 'result.expected', deliveryId, requestId });
  }

  /** Its siblings wait neither for the user, nor for one that the lead agent waits for itself. */
  #heed(id: string, state = this.#session.projection.subagent(id)?.state): void {
    const before = this.#expected.get(id);
    if (before === undefined) return;
    const holds = state !== 'waiting_for_input' && !this.#session.delegation.isAwaited(id);
    if (holds === before) return;
    this.#expected.set(id, holds);
    this.#tellBatch(id, holds ? 'batch.resumed' : 'batch.asking');
  }

  /** It has no result, or the lead agent knows it. */
  #leave(id: string): void {
    if (this.#expected.delete(id)) this.#tellBatch(id, 'batch.left');
  }

  #tellBatch(id: string, type: 'batch.asking' | 'batch.resumed' | 'batch.left'): void {
    const callId = deliveryAbout(id);
    this.#session.receive(`member:${callId}`, { type, callId });
  }

  /** Its batch has told it to stop, and tells what came of it with the others. */
  #isToldAsStopped(id: string): boolean {
    const { batches } = this.#session.unit;
    const batchId = batches.expecting(deliveryAbout(id));
    return batchId !== null && batches.stateOf(batchId)?.value === 'closing';
  }

  /** Under its own id: what is posted again after a crash is known to be the same. */
  #post(deliveryId: string, notice: NewNotice): void {
    this.#posted.add(deliveryId);
    postNotice(this.#session, { ...notice, deliveryId });
  }

  /** What waits to be told under this id is known already, or over. */
  #takeBack(deliveryId: string, from: readonly DeliveryView['state'][] = ['pending']): void {
    const isPosted = this.#posted.delete(deliveryId);
    const view = this.#session.projection.delivery(deliveryId);
    if (view ? from.includes(view.state) : isPosted)
      this.#session.receive(`delivery:${deliveryId}`, { type: 'delivery.dismissed', deliveryId });
  }
}
