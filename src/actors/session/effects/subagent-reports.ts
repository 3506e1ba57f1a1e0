// Passes subagents' reports to screens, topics and hooks immediately, to speech if the app requested that, and to the
// calls and batches that wait for them.
//
// Owns:     the pace of spoken progress, because screens show every report but speech skips some.
// Does not: run subagents, or decide which reports are delivered and when (batch, outbox).

import { callSafely } from '../../runtime/host.ts';
import { showUsage } from '../lead/lead-usage.ts';
import type { SpeakProgress } from '../../contracts/config.ts';
import { isPaused, type SubagentView } from '../../contracts/session-views.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import type { StepReport } from '../../contracts/task.ts';
import { postNotice } from './notices.ts';
import { cancelledNote } from '../../conversation/prompts.ts';
import { deliveryAbout } from '../../contracts/records.ts';
import type { EffectsSession } from './effects-session.ts';

/** The minimum interval between two spoken reports from one subagent, in milliseconds. */
export const PROGRESS_PACE_MS = 30_000;
/** The time after which unspoken progress is dropped, in milliseconds. */
const PROGRESS_TTL_MS = 30_000;

export class SubagentReports {
  readonly #session: EffectsSession;
  readonly #pace = new ProgressPace();
  /** Each subagent's latest unspoken progress. */
  readonly #spoken = new Map<string, string>();

  constructor(session: EffectsSession) {
    this.#session = session;
  }

  /** Handles a change of state, step or progress. */
  changed(view: SubagentView): void {
    const { projection, unit } = this.#session;
    const before = projection.subagent(view.id);
    projection.emit({ type: 'subagent.changed', subagent: view });
    showUsage(this.#session);
    if (view.progress !== null && view.progress !== before?.progress)
      this.progressed(view, { update: view.progress, percent: null });
    const { callId } = view;
    const pauses = isPaused(view.state);
    if (callId === null || pauses === isPaused(before?.state)) return;
    const batchId = unit.batchOf(callId);
    if (batchId !== null)
      this.#session.receive(`batch:${batchId}`, {
        type: pauses ? 'batch.asking' : 'batch.resumed',
        callId,
      });
  }

  /** Handles a progress report. `percent` is from 0 to 100, or null if the report has none. */
  progressed(
    view: SubagentView,
    { update: text, percent }: { readonly update: string; readonly percent: number | null },
  ): void {
    const session = this.#session;
    // Shows the text in the subagent's view first, so that the view does not count it as another change.
    session.projection.emit({ type: 'subagent.changed', subagent: { ...view, progress: text } });
    const timestamp = session.host.environment.clock.now();
    const { id: subagentId } = view;
    session.projection.emit({
      type: 'subagent.progressed',
      subagentId,
      text,
      percent,
      at: timestamp,
    });
    session.lead.show?.({
      kind: 'progress',
      subagentId: view.id,
      subagentName: view.name,
      text,
    });
    const how = session.configs[view.toolName]?.speakProgress ?? session.speakProgress;
    if (this.#pace.allows(view.id, how, percent, timestamp)) this.#postProgress(view, text);
  }

  /** Shows a result unchanged, so that the user does not have to wait until the model has rephrased it. */
  reportResult(deliveryId: string): void {
    const { records, lead, showsRawResults } = this.#session;
    const { kind, subagentId, label, text } = records.delivery(deliveryId) ?? {};
    if (!showsRawResults || kind !== 'result' || !subagentId) return;
    const subagentName = this.#session.configs[label ?? '']?.name ?? label ?? '';
    lead.show?.({ kind: 'result', subagentId, subagentName, text: text ?? '' });
  }

  stepped(view: SubagentView, report: StepReport): void {
    const { host, hooks } = this.#session;
    this.changed(view);
    callSafely(host, 'hook onSubagentStep', () =>
      hooks.onSubagentStep?.({
        subagentId: view.id,
        subagentName: view.name,
        stepNumber: report.step,
        toolCalls: report.toolCalls,
        tokensUsed: report.tokensUsed,
        ...(report.cost === undefined ? {} : { cost: report.cost }),
      }),
    );
  }

  /**
   * Handles a subagent that has ended. `request`: the user's input that led to the subagent, or null if there is none.
   */
  ended(view: SubagentView, outcome: Outcome, callId: string | null, request: string | null): void {
    const { host, hooks, projection, unit } = this.#session;
    this.#dropUnspoken(view.id);
    projection.emit({ type: 'subagent.changed', subagent: { ...view, outcome } });
    projection.endLasting(({ lasts, subagentId }) => lasts === 'task' && subagentId === view.id);
    showUsage(this.#session);
    callSafely(host, 'hook onSubagentEnd', () =>
      hooks.onSubagentEnd?.({ subagentId: view.id, subagentName: view.name, outcome }),
    );
    const { clock } = host.environment;
    projection.emit({
      type: 'subagent.ended',
      subagent: { ...view, outcome },
      outcome,
      batchId: unit.batchOf(callId ?? deliveryAbout(view.id)),
      request,
      at: clock.now(),
    });
    this.#session.services.subagentEnded(view.id, outcome);
  }

  /**
   * Settles the subagent's call, even if there is no result. `isKnown`: the model learns about the end from another of
   * its tools.
   */
  settleCall(view: SubagentView, outcome: Outcome, callId: string, isKnown: boolean): void {
    const { unit } = this.#session;
    if (outcome.status !== 'cancelled' || unit.batches.hasStopped(unit.batchOf(callId))) {
      this.#session.receive(`call:${callId}`, { type: 'subagent.ended', outcome });
      return;
    }
    const input = this.#session.records.calls.get(callId)?.input;
    // No component waits for the result of a cancelled call, so the model is told that there will be none.
    this.#session.receive(`call:${callId}`, { type: 'call.cancel' });
    const reason = outcome.error.message.replace(/^Cancelled: /, '');
    if (!isKnown)
      this.#session.lead.note(
        cancelledNote(view.toolName, reason, outcome.toolLedger, input),
        false,
      );
  }

  #postProgress(view: SubagentView, text: string): void {
    const deliveryId = postNotice(this.#session, {
      kind: 'progress',
      label: 'SUBAGENT UPDATE',
      text,
      prompt: this.#session.records.words.progress(view, text),
      subagentId: view.id,
      ttlMs: PROGRESS_TTL_MS,
    });
    this.#spoken.set(view.id, deliveryId);
  }

  /** Drops the subagent's unspoken progress, which is outdated. */
  #dropUnspoken(subagentId: string): void {
    const deliveryId = this.#spoken.get(subagentId);
    this.#pace.forget(subagentId);
    this.#spoken.delete(subagentId);
    if (deliveryId === undefined) return;
    if (this.#session.projection.delivery(deliveryId)?.state === 'pending')
      this.#session.receive('outbox', { type: 'outbox.outdate', deliveryId });
  }
}

/** The time and the percentage of each subagent's last spoken progress. */
export class ProgressPace {
  readonly #said = new Map<string, { readonly at: number; readonly quarter: number }>();

  /** Returns whether a report should be spoken. `percent` is from 0 to 100, or null if unknown. */
  allows(subagentId: string, how: SpeakProgress, percent: number | null, at: number): boolean {
    if (how === 'off') return false;
    const last = this.#said.get(subagentId);
    const quarter = percent === null ? 0 : Math.min(3, Math.floor(percent / 25));
    if (how === 'milestones' && quarter <= (last?.quarter ?? 0)) return false;
    if (last !== undefined && at - last.at < PROGRESS_PACE_MS) return false;
    this.#said.set(subagentId, { at, quarter: Math.max(quarter, last?.quarter ?? 0) });
    return true;
  }

  /** Removes the records of an ended subagent. */
  forget(subagentId: string): void {
    this.#said.delete(subagentId);
  }
}
