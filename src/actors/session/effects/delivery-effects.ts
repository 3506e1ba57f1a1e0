// Carries out the effects of deliveries: offers them to the lead agent, shows them as cards, and records that
// they were heard, seen, or dropped. Results that are told together have a view each.
//
// Owns:     nothing.
// Does not: decide when something is said (outbox) or with what else (batch).

import type { HearingGrade } from '../../../machines/index.ts';
import { callSafely } from '../../runtime/host.ts';
import type { DeliveryView } from '../../contracts/session-views.ts';
import type { CallEffects } from './call-effects.ts';
import type { Prompt } from '../../notes/note.ts';
import { silentNote } from '../../conversation/prompts.ts';
import { nameOfSpawned } from '../state/synthetic-turns.ts';
import { subjectOf, type DeliveryRecord } from '../../contracts/records.ts';
import type { EffectHandlers } from '../../contracts/session-protocol.ts';
import type { EffectsSession } from './effects-session.ts';
import { CEILING_REASON } from '../state/batches.ts';
import { byOf } from '../../../machines/outbox-setup.ts';

/** The handlers of outbox and batches. */
export type DeliveryHandlers = Pick<
  EffectHandlers,
  Extract<keyof EffectHandlers, `outbox.${string}` | `batch.${string}`>
>;

export class DeliveryEffects {
  readonly #session: EffectsSession;
  readonly #calls: CallEffects;

  constructor(session: EffectsSession, calls: CallEffects) {
    this.#session = session;
    this.#calls = calls;
  }

  /** Carries out the effects of the outbox and of the batches. */
  get handlers(): DeliveryHandlers {
    const session = this.#session;
    const waits = ({ deliveryId }: { readonly deliveryId: string }): void =>
      this.#each(deliveryId, { state: 'pending' });
    const card = ({ deliveryId }: { readonly deliveryId: string }): void => {
      this.#each(deliveryId, { state: 'pending', card: true });
      this.#card(deliveryId);
    };
    return {
      'outbox.offer': ({ deliveryId, generation, attempt }) =>
        this.#offer(deliveryId, generation, attempt),
      'outbox.interrupt': () => session.lead.interrupt(),
      'outbox.abandon': ({ deliveryId, generation }) => {
        session.lead.abandon(generation);
        waits({ deliveryId });
      },
      'outbox.begun': ({ deliveryId }) => this.#each(deliveryId, { state: 'playing' }),
      'outbox.returned': waits,
      'outbox.card': card,
      'outbox.told': card,
      'outbox.rested': ({ deliveryId }) => this.#rested(deliveryId),
      // The batch settles the results that were told together, one by one.
      'outbox.delivered': ({ deliveryId, ...how }) => {
        if (!session.unit.batches.has(deliveryId)) this.#delivered(deliveryId, how);
      },
      'outbox.dismissed': ({ deliveryId, ...how }) =>
        this.#gone(deliveryId, { state: 'dismissed', ...byOf(how) }),
      'outbox.dropped': ({ deliveryIds, reason }) => {
        for (const id of deliveryIds) this.#gone(id, { state: 'dropped', dropped: reason });
      },
      'batch.delivered': ({ deliveryIds, ...how }) => {
        for (const id of deliveryIds) this.#delivered(id, how);
      },
      'batch.dismissed': ({ deliveryIds, ...how }) => {
        for (const id of deliveryIds) this.#gone(id, { state: 'dismissed', ...byOf(how) });
      },
      'batch.stop': ({ callIds }) => {
        for (const id of callIds) this.#stop(id);
      },
      'batch.ended': ({ batchId }) => session.unit.batches.forget(batchId),
    };
  }

  /** Shows waiting deliveries again after a crash, and forgets those that are over; see `recovery.ts`. */
  resume(): void {
    const { records, unit } = this.#session;
    const { pending, current } = unit.outbox.getSnapshot().context;
    const resting = pending.flatMap((item) => (item.resting ? item.deliveryId : []));
    const rests = new Set(resting.flatMap((id) => this.#partsOf(id)));
    const items = [...pending, ...(current ? [current] : [])].map((item) => item.deliveryId);
    for (const batchId of unit.batches.ids) {
      const state = unit.batches.stateOf(batchId);
      if (state?.done) unit.batches.forget(batchId);
      else if (state?.value === 'closing')
        for (const id of unit.batches.contextOf(batchId)?.working ?? []) this.#stop(id);
    }
    const held = unit.batches.ids.flatMap((id) => unit.batches.contextOf(id)?.parts ?? []);
    const due = new Set([...items.flatMap((id) => this.#partsOf(id)), ...held]);
    for (const id of due) this.#show(id, rests.has(id) ? { card: true } : {});
    for (const id of resting) this.#card(id);
    for (const id of records.deliveries.keys()) if (!due.has(id)) records.deliveries.delete(id);
  }

  /** Shows a delivery that waits to be said. */
  waits(deliveryId: string): void {
    if (!this.#session.projection.delivery(deliveryId)) this.#show(deliveryId, {});
  }

  /** Drops the unheard delivery of a question that is over. */
  withdrawn(requestId: string): void {
    const view = this.#session.projection.delivery(requestId);
    if (view && view.state !== 'delivered') this.#show(requestId, { state: 'dismissed' });
    this.forget(requestId);
  }

  /**
   * Records that the lead agent has told it from another tool, and answers a call that stayed open for it.
   */
  known(callId: string): void {
    this.#answerSilently(callId);
    this.forget(callId);
  }

  forget(deliveryId: string): void {
    const { records, unit, delegation } = this.#session;
    const { kind, subagentId } = records.delivery(deliveryId) ?? {};
    const told =
      records.calls.get(deliveryId)?.subagentId ?? (kind === 'result' ? subagentId : null);
    if (told) delegation.delivered(told);
    records.deliveries.delete(deliveryId);
    records.calls.delete(deliveryId);
    unit.calls.forget(deliveryId);
  }

  #offer(deliveryId: string, generation: number, attempt: number): void {
    const { records, lead, unit } = this.#session;
    this.#each(deliveryId, { state: 'offered', attempts: attempt, card: false });
    const batch = unit.batches.contextOf(deliveryId);
    if (batch) {
      const deliveries = batch.parts.flatMap((id) => records.delivery(id) ?? []);
      // The open calls are answered one by one, and then told together.
      for (const id of batch.parts) this.#answerSilently(id);
      const { parts: deliveryIds } = batch;
      const text = deliveries.map((part) => `${part.label}: ${part.text}`).join('\n');
      lead.offer({
        deliveryId,
        deliveryIds,
        generation,
        attempt,
        kind: 'result',
        priority: 'normal',
        prompt: records.togetherPrompt(batch.parts, this.#namesOf(batch.working)),
        role: records.words.role,
        text,
        answersCallId: null,
      });
      return;
    }
    const delivery = records.delivery(deliveryId);
    if (!delivery) return;
    const { kind, priority, prompt, text } = delivery;
    const answersCallId = this.#answerLate(delivery);
    const role = kind === 'result' || kind === 'progress' ? records.words.role : 'system';
    lead.offer({
      deliveryId,
      generation,
      attempt,
      kind,
      priority,
      prompt,
      role,
      text,
      answersCallId,
    });
  }

  /** Tells the model of a delivery that will not be said: it is on the screen. */
  #rested(deliveryId: string): void {
    const { records, lead } = this.#session;
    this.#show(deliveryId, { state: 'pending', card: true });
    const delivery = records.delivery(deliveryId);
    if (!delivery) return;
    const words = silentNote(delivery.prompt);
    if (delivery.answersCall) this.#answerSilently(deliveryId, words);
    else lead.note(words);
    this.#card(deliveryId);
  }

  /** Gives a resting delivery to the present and later listeners. */
  #card(deliveryId: string): void {
    const { lead, userInput } = this.#session;
    for (const part of this.#partsOf(deliveryId))
      lead.showCard?.(part, () => userInput.shown(part));
  }

  /** Returns the deliveries that an item of the outbox tells: itself, or the results of a batch. */
  #partsOf(deliveryId: string): readonly string[] {
    return this.#session.unit.batches.contextOf(deliveryId)?.parts ?? [deliveryId];
  }

  /** Stops a late member of a batch. */
  #stop(id: string): void {
    const { unit, delegation } = this.#session;
    const subagent = unit.calls.has(id) ? delegation.ofCall(id) : delegation.get(subjectOf(id));
    subagent?.cancel(CEILING_REASON);
  }

  /**
   * Returns the names by which the lead model knows them: the tools that it called, and the subagents that it
   * spawned.
   */
  #namesOf(members: readonly string[]): readonly string[] {
    const { records, projection } = this.#session;
    return members.flatMap((member) => {
      const view = projection.subagent(subjectOf(member));
      return records.calls.get(member)?.name ?? (view ? nameOfSpawned(view) : []);
    });
  }

  #each(deliveryId: string, change: Partial<DeliveryView>): void {
    for (const id of this.#partsOf(deliveryId)) this.#show(id, change);
  }

  /**
   * Turns a delivery that is about to reach the user, or was dismissed, into the answer of the call that
   * stayed open for it: once, however often it is offered. Returns the call, if it is to be answered now.
   */
  #answerLate(delivery: DeliveryRecord): string | null {
    const { callId, answersCall, label: name, text } = delivery;
    if (!answersCall || callId === null) return null;
    this.#calls.answered(callId, name, text);
    return callId;
  }

  /** Tells the model of a delivery that reached the user, or was dismissed, without being told. */
  #answerSilently(deliveryId: string, words?: Prompt): void {
    const { records, lead } = this.#session;
    const delivery = records.delivery(deliveryId);
    const callId = delivery ? this.#answerLate(delivery) : null;
    if (delivery && callId !== null)
      lead.answerTool(callId, words ?? delivery.prompt, false, `${deliveryId}.note`);
  }

  #delivered(
    deliveryId: string,
    { grade, ...how }: { readonly grade: HearingGrade; readonly by?: string },
  ): void {
    const { host, hooks, records } = this.#session;
    // A question that was heard is not over: it waits for its answer.
    const view = this.#show(deliveryId, { state: 'delivered', grade, ...byOf(how) });
    if (view) callSafely(host, 'hook onDelivered', () => hooks.onDelivered?.(view));
    if (records.questions.has(deliveryId)) return;
    this.#answerSilently(deliveryId);
    this.forget(deliveryId);
  }

  #gone(deliveryId: string, change: Partial<DeliveryView>): void {
    this.#show(deliveryId, change);
    this.#answerSilently(deliveryId);
    this.forget(deliveryId);
  }

  #show(deliveryId: string, change: Partial<DeliveryView>): DeliveryView | null {
    const { records, projection } = this.#session;
    const record = records.delivery(deliveryId);
    if (!record) return null;
    const { kind, priority, label, text, subagentId, at } = record;
    const view: DeliveryView = {
      deliveryId,
      kind,
      priority,
      label,
      text,
      subagentId,
      at,
      state: 'pending',
      grade: null,
      dropped: null,
      attempts: 0,
      card: false,
      ...projection.delivery(deliveryId),
      ...change,
    };
    projection.emit({ type: 'delivery.changed', delivery: view });
    return view;
  }
}
