// Lets an app wait until the session is quiet, or until the next result is reported. Also determines when the next
// deadline is due, and whether a session is idle and can leave memory until an external event occurs.
//
// Owns:     the open waits, and the reported results that have not been returned yet.
// Does not: decide when something is delivered (outbox) or whether a delivery was heard, or suspend and wake the
//           session (session-pool).
//
// Invariants
//   AWAITED-1. Each result is returned once, in the order in which the results were reported. If a result was reported
//       before a wait started, the wait returns it immediately. Only the latest `KEPT` unreturned results are stored.
//   AWAITED-2. A returned result counts as seen, because the app that waits for it counts as a listener.
//   AWAITED-3. A wait settles exactly once: with its result, when its signal aborts, or when the session ends.

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { CancelledError, ConfigurationError, OffstageError } from '../../../values/errors.ts';
import { forgetOldest } from '../../../values/forget-oldest.ts';
import { floorOf } from '../../../machines/index.ts';
import { next as nextItem } from '../../../machines/outbox-setup.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { DeliveryView } from '../../contracts/session-views.ts';
import type { LeadSession } from './lead-agents.ts';

/** A result that was reported. */
export interface SessionResult extends DeliveryView {
  /** The text in which the lead agent reported the result; null if it was reported by voice or without text. */
  readonly said: string | null;
}

const waitSchema = z.strictObject({ signal: z.instanceof(AbortSignal).optional() });
const resultSchema = waitSchema.extend({
  subagentId: z.string().optional(),
  callId: z.string().optional(),
});

/** The options of a session's `idle()`. */
export interface IdleOptions {
  /** Cancels the wait, which then rejects with `CANCELLED`. */
  readonly signal?: AbortSignal;
}

/** The options of a session's `nextResult()`. */
export interface NextResultOptions extends IdleOptions {
  /** The subagent whose result is awaited. @defaultValue any subagent */
  readonly subagentId?: string;
  /** The call by the lead agent whose result is awaited. @defaultValue any call */
  readonly callId?: string;
}

const KEPT = 100;

interface Waiter {
  readonly wanted: NextResultOptions;
  resolve(result: SessionResult): void;
  reject(error: Error): void;
}

export class Awaited {
  readonly #session: LeadSession;
  /** Results that were reported but have not been returned yet. */
  readonly #told = new Map<string, DeliveryView>();
  /** Recently returned results. */
  readonly #returned = new Set<string>();
  readonly #waiters = new Set<Waiter>();
  readonly #idle = new Set<() => void>();
  #isSettling = false;
  #isOver = false;

  constructor(session: LeadSession) {
    this.#session = session;
    session.projection.events.subscribe({
      next: (event) => {
        if (event.type === 'delivery.changed') this.#changed(event.delivery);
        this.settleWaits();
      },
      complete: () => this.#ended(),
    });
  }

  /**
   * Resolves when the session is quiet or has ended.
   * @throws {ConfigurationError} `SESSION_NOT_ACTIVE` before the session starts
   */
  idle(options: IdleOptions): Promise<void> {
    const { signal } = check('idle(options)', waitSchema, options, 'INVALID_ARGUMENT');
    if (this.#isOver) return Promise.resolve();
    if (this.#session.projection.connection === 'created')
      throw new ConfigurationError(
        'SESSION_NOT_ACTIVE',
        'idle(): expected the session to be started, it is created: call `await session.start()` first',
      );
    return new Promise((resolve, reject) => {
      this.#until(signal, reject, (done) => {
        const becameIdle = (): void => {
          this.#idle.delete(becameIdle);
          done();
          resolve();
        };
        this.#idle.add(becameIdle);
        return () => this.#idle.delete(becameIdle);
      });
      this.settleWaits();
    });
  }

  nextResult(options: NextResultOptions): Promise<SessionResult> {
    const wanted = check('nextResult(options)', resultSchema, options, 'INVALID_ARGUMENT');
    const told = [...this.#told.values()].find((view) => this.#isWanted(view, wanted));
    if (told) return Promise.resolve(this.#take(told));
    if (this.#isOver) return Promise.reject(ended());
    return new Promise((resolve, reject) => {
      this.#until(wanted.signal, reject, (done) => {
        const waiter: Waiter = {
          wanted,
          resolve: (result) => {
            this.#waiters.delete(waiter);
            done();
            resolve(result);
          },
          reject: (error) => {
            this.#waiters.delete(waiter);
            done();
            reject(error);
          },
        };
        this.#waiters.add(waiter);
        return () => this.#waiters.delete(waiter);
      });
      this.settleWaits();
    });
  }

  /** True while an app is waiting for results. */
  get isListening(): boolean {
    return this.#waiters.size > 0;
  }

  /** Returns whether an app is waiting for one of these deliveries (AWAITED-2). */
  wants(deliveryIds: readonly string[]): boolean {
    const { projection } = this.#session;
    return deliveryIds.some((id) => {
      const view = projection.delivery(id);
      return (
        view?.kind === 'result' &&
        [...this.#waiters].some(({ wanted }) => this.#isWanted(view, wanted))
      );
    });
  }

  /** Settles the waits whose condition is met, soon after a change. */
  settleWaits(): void {
    if (this.#isSettling || (this.#idle.size === 0 && this.#waiters.size === 0)) return;
    this.#isSettling = true;
    const { scheduler } = this.#session.host.environment;
    // Events that follow in this turn, or that are being written to the journal, are handled first.
    scheduler.yieldThen(() =>
      scheduler.yieldThen(() => {
        this.#isSettling = false;
        if (this.#isOver || !hasNothingUnderWay(this.#session)) return;
        for (const becameIdle of this.#idle) becameIdle();
        this.#refuseWhatNeverComes();
      }),
    );
  }

  #changed(view: DeliveryView): void {
    if (view.kind !== 'result') return;
    const isTold = view.state === 'delivered' || (view.state === 'pending' && view.card);
    if (!isTold) {
      this.#told.delete(view.deliveryId);
      return;
    }
    // The delivery has already been returned as a card, which acknowledged it.
    if (this.#returned.has(view.deliveryId)) return;
    const waiter = [...this.#waiters].find(({ wanted }) => this.#isWanted(view, wanted));
    if (waiter) {
      waiter.resolve(this.#take(view));
      return;
    }
    this.#told.set(view.deliveryId, view);
    forgetOldest(this.#told, KEPT);
  }

  #take(view: DeliveryView): SessionResult {
    const { deliveryId } = view;
    this.#told.delete(deliveryId);
    this.#returned.add(deliveryId);
    forgetOldest(this.#returned, KEPT);
    const { projection, userInput } = this.#session;
    if (view.state !== 'delivered') userInput.shown(deliveryId);
    const item = projection.transcript.findLast(
      (one) => one.deliveryId === deliveryId || one.deliveryIds?.includes(deliveryId) === true,
    );
    return { ...view, said: item?.text ?? null };
  }

  #isWanted({ deliveryId, subagentId }: DeliveryView, wanted: NextResultOptions): boolean {
    const { projection } = this.#session;
    const isOfSubagent = wanted.subagentId === undefined || wanted.subagentId === subagentId;
    const callId = subagentId === null ? null : projection.subagent(subagentId)?.callId;
    const isOfCall =
      wanted.callId === undefined || wanted.callId === deliveryId || wanted.callId === callId;
    return isOfSubagent && isOfCall;
  }

  /**
   * Rejects waits for a subagent that has no result left to report, because it was cancelled or its result has already
   * been read.
   */
  #refuseWhatNeverComes(): void {
    const { projection } = this.#session;
    for (const { wanted, reject } of this.#waiters) {
      const over = projection
        .subagents()
        .find(
          (view) =>
            view.endedAt !== null &&
            (view.id === wanted.subagentId || view.callId === wanted.callId),
        );
      if (!over) continue;
      const name = `${over.id} ("${over.name}")`;
      const why =
        over.state === 'cancelled'
          ? 'was cancelled'
          : `is ${over.state}, and the lead agent knows it`;
      reject(new OffstageError('NO_RESULT', `No result of ${name} is going to be told: it ${why}`));
    }
  }

  #until(
    signal: AbortSignal | undefined,
    reject: (error: Error) => void,
    begin: (done: () => void) => () => void,
  ): void {
    const aborted = (): void => {
      leave();
      reject(new CancelledError('the wait was broken off', { cause: signal?.reason }));
    };
    const leave = begin(() => signal?.removeEventListener('abort', aborted));
    if (signal?.aborted) aborted();
    else signal?.addEventListener('abort', aborted, { once: true });
  }

  #ended(): void {
    this.#isOver = true;
    for (const becameIdle of this.#idle) becameIdle();
    for (const { reject } of this.#waiters) reject(ended());
  }
}

function ended(): CancelledError {
  return new CancelledError('the session has ended');
}

/** The states in which the connection waits for the user's speech, for a timer, or until it is needed. */
const IDLE_CONNECTION: ReadonlySet<unknown> = new Set(['active', 'resting', 'refused']);

/** The states in which a call waits for an external event. */
const WAITING: ReadonlySet<unknown> = new Set(['delegated', 'settled']);

/**
 * Returns whether the session is quiet: no model, tool or subagent is running, and every due delivery has been made.
 * Everything that is still open is waiting for the user (presented questions), for a timer, or for an external event. A
 * delivery without a listener also waits.
 */
function hasNothingUnderWay({ unit, tree, records, userInput, agents }: LeadSession): boolean {
  const session = unit.session.snapshot;
  const { context } = unit.outbox.snapshot;
  const isTelling = context.current !== null || nextItem(context) !== undefined;
  return (
    IDLE_CONNECTION.has(session.value.connection) &&
    floorOf(session) === 'nobody' &&
    records.unfinished.length === 0 &&
    // A due delivery is made as soon as a client is attached.
    !(isTelling && userInput.isAttached) &&
    !unit.ways.ids.some((id) => typeof unit.ways.stateOf(id)?.value === 'object') &&
    !unit.calls.ids.some((id) => !WAITING.has(unit.calls.stateOf(id)?.value)) &&
    // Suspending would interrupt the hooks of an agent that is entering or leaving, and the hooks would run again.
    !agents.isTransferring &&
    !unit.unit.isBusy &&
    tree.isIdle
  );
}

/**
 * Returns whether a session is quiet and may leave memory. `ownClients`: the number of attached clients that only embed
 * the session.
 */
export function isIdle(
  session: LeadSession & {
    readonly services: { readonly views: readonly unknown[] };
    readonly upkeep: Pick<Upkeep, 'isBusy'>;
  },
  ownClients: number,
): boolean {
  return (
    hasNothingUnderWay(session) &&
    // An attached client may speak at any time.
    session.userInput.clients <= ownClients &&
    // Suspending would interrupt the maintenance, which would start again after the next turn.
    !session.upkeep.isBusy &&
    // The services' sources listen only while the session is in memory.
    session.services.views.length === 0
  );
}

/** Returns the time of the session's next deadline, in milliseconds since 1970, or null if none is pending. */
export function nextDueAt({ unit, tree }: LeadSession): number | null {
  const next = Math.min(unit.unit.nextDueAt, tree.nextDueAt);
  return next === Infinity ? null : next;
}
