// Sends a session's deliveries to a user who has left: decides which channel is used, and when.
//
//   a delivery waits ─▶ reach.planned (its first step) ─▶ deadline.reach ─▶ send ─▶ reach.ended (with the next step)
//
// Owns:     the policy (steps, quiet hours, repetitions), and the calls to the channels.
// Does not: decide whether a delivery may be sent now (machines/reach-machine.ts, with the outbox).
//
// Invariants
//   REACH-POLICY-1. Each entry contains the next step and its time, so that folding does not depend on a policy, a
//       clock or a calendar.
//   REACH-POLICY-2. No step starts during the quiet hours of the user's time zone, even if the process is late.
//   REACH-POLICY-3. All attempts to send a step have the same key. An attempt whose outcome is unknown is repeated only
//       if the channel is idempotent.

import { z } from 'zod';
import { aFunction, check } from '../../../values/checks.ts';
import { clip } from '../../../values/clip.ts';
import {
  CancelledError,
  ConfigurationError,
  isA,
  messageOf,
  OffstageError,
  ProviderError,
  TimeoutError,
} from '../../../values/errors.ts';
import { ownValue } from '../../../values/own-value.ts';
import { raceAbort, raceTime } from '../../../values/race-abort.ts';
import type { DeliveryPriority, ReachReceipt } from '../../../machines/index.ts';
import type { DeliveryRecord } from '../../contracts/records.ts';
import type { EventFor } from '../../contracts/session-protocol.ts';
import type { DeliveryView, QuestionView } from '../../contracts/session-views.ts';
import type { ReachChannel } from '../../ports/reach-channel.ts';
import type { LeadSession } from '../lead/lead-agents.ts';
import { questionView } from '../state/projection.ts';
import { timeZoneName } from './schedules.ts';

const INVALID = 'INVALID_ARGUMENT';
const SEND_TIMEOUT_MS = 30_000;
/** The pauses before each retry of a failed step. */
const PAUSES_MS = [60_000, 300_000];
/** About 30 years: later times could not be read as dates. */
const MAX_AFTER_MS = 1e12;
const MAX_TEXT_CHARS = 20_000;
const MAX_ERROR_CHARS = 200;
/** In minutes. */
const DAY = 1440;
const MINUTE_MS = 60_000;

/** How a session reaches a user who has left. */
export interface ReachOptions {
  /** The channels by name. */
  readonly channels: Readonly<Record<string, ReachChannel>>;
  /** The steps, in the order of their times. If a failed step is not repeated, the next step is taken immediately. */
  readonly steps: readonly {
    /**
     * The time in milliseconds after which the step is taken, unless the delivery has been heard (or the question
     * answered).
     */
    readonly afterUnheardMs: number;
    /** The name of a channel. */
    readonly by: string;
    /** @defaultValue every priority */
    readonly priorities?: readonly DeliveryPriority[];
  }[];
  /** The hours in which nothing is sent, such as `22:00` to `07:00`. @defaultValue none */
  readonly quiet?: {
    readonly from: string;
    readonly to: string;
    /** @defaultValue the session's `timeZone` */
    readonly timeZone?: string;
  };
  /** Creates the links with which a person answers a question: `answerLinks` of `offstage/serve`. @defaultValue none */
  readonly links?: {
    /** Returns the links of a message. `sentAt`: when the message was first sent, in milliseconds since 1970. */
    create(
      item: Parameters<ReachChannel['send']>[0],
      question: QuestionView,
      sentAt: number,
    ): Parameters<ReachChannel['send']>[1];
  };
}

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time such as "22:00"');
const channelShape = z.looseObject({
  send: aFunction,
  idempotent: z.boolean(),
  timeoutMs: z.number().positive().optional(),
});

export const reachShape = z
  .strictObject({
    channels: z.record(z.string().min(1).max(100), channelShape),
    steps: z
      .array(
        z.strictObject({
          afterUnheardMs: z.number().min(0).max(MAX_AFTER_MS),
          by: z.string(),
          priorities: z.array(z.enum(['normal', 'high', 'urgent'])).optional(),
        }),
      )
      .max(20),
    quiet: z
      .strictObject({ from: timeOfDay, to: timeOfDay, timeZone: timeZoneName.optional() })
      .refine(({ from, to }) => from !== to, 'expected two different times')
      .optional(),
    links: z.looseObject({ create: aFunction }).optional(),
  })
  .superRefine(({ channels, steps }, { addIssue }) => {
    for (const [index, { by, afterUnheardMs }] of steps.entries()) {
      const path = ['steps', index];
      const names = JSON.stringify(Object.keys(channels));
      if (!Object.hasOwn(channels, by))
        addIssue({ code: 'custom', path, message: `by: expected one of ${names}, got "${by}"` });
      if (afterUnheardMs < (steps[index - 1]?.afterUnheardMs ?? 0))
        addIssue({ code: 'custom', path, message: 'expected steps in the order of their times' });
    }
  });

/** Sends a session's deliveries to a user who has left. */
export interface Reach {
  /** Whether any steps are configured. */
  readonly hasSteps: boolean;
  /** Plans the first step of a delivery that has no plan yet. */
  wanted(deliveryId: string): void;
  /** Updates the view of a delivery whose plan has changed, and removes a plan that is finished. */
  changed(deliveryId: string): void;
  /** Sends a step. */
  send(deliveryId: string): void;
  /** Aborts the current attempt to send a step. */
  stop(deliveryId: string): void;
  /** Continues the plans of an earlier process. */
  resume(): void;
  /** Aborts all current attempts. */
  suspend(): void;
  /** Records a receipt that a channel received later. Resolves with true if the receipt was new. */
  reached(key: string, receipt: 'delivered' | 'read'): Promise<boolean>;
  /** Returns the view of a delivery's plan, or of the plan for the batch that contains the delivery. */
  viewOf(deliveryId: string): DeliveryView['reach'];
}

/** The deliveries of the session. A batch counts as one delivery that contains all its results. */
interface ReachDeliveries {
  joined(id: string): DeliveryRecord | undefined;
  /** Updates the view of a delivery. */
  showAgain(id: string): void;
}

interface Failed {
  readonly error: unknown;
  readonly mayRepeat: boolean;
}

const NO_STEP = { by: null, afterUnheardMs: 0 } as const;
/** Progress is not sent, because it is not worth a message. */
const NO_DELIVERY = { at: 0, kind: 'progress' } as const;

/** @param zone The session's time zone. */
export function reachOf(
  session: LeadSession,
  deliveries: ReachDeliveries,
  options: ReachOptions | undefined,
  zone: string,
): Reach {
  const { unit, host, records } = session;
  const { clock, scheduler } = host.environment;
  const { channels = {}, steps = [] } = options ?? {};
  const sending = new Map<string, AbortController>();
  const stateOf = (id: string) => unit.ways.of(id);
  const keyOf = (id: string, step: number): string => `${session.id}/${id}/${step}`;

  /** Returns the first step, from number `first`, that applies to the delivery's priority; null if there is none. */
  function stepFrom(id: string, first: number, dueFrom: (afterMs: number) => number) {
    const priority = deliveries.joined(id)?.priority ?? 'normal';
    const step = steps.findIndex(
      ({ priorities }, index) => index >= first && (priorities?.includes(priority) ?? true),
    );
    const { by, afterUnheardMs: afterMs } = steps[step] ?? NO_STEP;
    const dueAt = Math.max(clock.now(), dueFrom(afterMs));
    return by === null ? null : { step, by, afterMs, dueAt: afterQuiet(options, dueAt, zone) };
  }

  /**
   * Ends an attempt. A failed step is repeated after a pause, or the next step is taken earlier.
   */
  function ended(id: string, receipt: ReachReceipt, failure?: Failed): void {
    const way = stateOf(id)?.context;
    if (!way) return;
    const { step, by, afterMs, since, sent, attempt } = way;
    const failed = sent.filter((one) => one.step === step).length;
    const pauseMs = failure?.mayRepeat ? PAUSES_MS[failed] : undefined;
    const next =
      pauseMs === undefined
        ? stepFrom(id, step + 1, (ms) => (failure ? 0 : since + ms))
        : { step, by, afterMs, dueAt: afterQuiet(options, clock.now() + pauseMs, zone) };
    const error = failure && clip(messageOf(failure.error), MAX_ERROR_CHARS);
    if (failure) host.report(reported(failure.error, by), `channel ${by}, ${keyOf(id, step)}`);
    session.receive(`reach:${id}`, {
      type: 'reach.ended',
      attempt,
      receipt,
      next,
      ...(error === undefined ? {} : { error }),
    });
  }

  function itemOf(id: string, step: number): Parameters<ReachChannel['send']>[0] {
    const delivery = deliveries.joined(id);
    if (!delivery) throw new ConfigurationError(INVALID, `There is no delivery ${id} any more`);
    const { kind, priority, label, text } = delivery;
    const asked = records.questions.get(id);
    const { action, proposed } = asked ?? {};
    return {
      key: keyOf(id, step),
      sessionId: session.id,
      ...(session.user !== undefined && { user: session.user }),
      deliveryId: id,
      kind,
      priority,
      label: asked?.subagentName ?? label,
      text: clip(text, MAX_TEXT_CHARS),
      ...(asked && { options: asked.options.map((one) => ({ id: one.id, label: one.label })) }),
      ...(action && { call: { ...action, ...(proposed && { input: proposed.changed.input }) } }),
      ...(asked?.answerableBy && { answerableBy: asked.answerableBy }),
    };
  }

  function linksOf(id: string, item: ReturnType<typeof itemOf>) {
    const [asked, state] = [records.questions.get(id), unit.questions.stateOf(id)];
    if (!asked || !state) return [];
    const { begunAt = 0 } = stateOf(id)?.context ?? {};
    return options?.links?.create(item, questionView(asked, state), begunAt) ?? [];
  }

  function send(id: string): void {
    const { by = '', step = 0 } = stateOf(id)?.context ?? {};
    const { timeoutMs = SEND_TIMEOUT_MS } = ownValue(channels, by) ?? {};
    const leaving = new AbortController();
    sending.set(id, leaving);
    const isStill = (): boolean => sending.get(id) === leaving && sending.delete(id);
    const call = async (signal: AbortSignal): Promise<ReachReceipt> => {
      const channel = ownValue(channels, by);
      if (!channel) throw new ConfigurationError(INVALID, `There is no channel "${by}" any more`);
      const both = AbortSignal.any([signal, leaving.signal]);
      const item = itemOf(id, step);
      const sent = channel.send(item, linksOf(id, item), both);
      const known = await raceAbort(sent, leaving.signal);
      return known === 'delivered' || known === 'read' ? known : 'sent';
    };
    const late = (): Error => new TimeoutError(`${by} has not answered for ${timeoutMs} ms`);
    raceTime(call, { timeoutMs, scheduler, late }).then(
      (receipt) => isStill() && ended(id, receipt),
      (error: unknown) =>
        isStill() && ended(id, 'failed', { error, mayRepeat: mayRepeat(error, by) }),
    );
  }

  /** REACH-POLICY-3 */
  function mayRepeat(error: unknown, by: string): boolean {
    if (isA(error, TimeoutError)) return ownValue(channels, by)?.idempotent === true;
    return !isA(error, ConfigurationError) && !(isA(error, ProviderError) && !error.retryable);
  }

  function stop(id: string): void {
    const leaving = sending.get(id);
    sending.delete(id);
    leaving?.abort(new CancelledError('no channel is needed any more'));
  }

  function wanted(deliveryId: string): void {
    const { at: since, kind } = deliveries.joined(deliveryId) ?? NO_DELIVERY;
    if (kind === 'progress' || unit.ways.has(deliveryId) || !unit.isWaiting(deliveryId)) return;
    const planned = stepFrom(deliveryId, 0, (ms) => since + ms);
    if (!planned) return;
    const { step, by, dueAt, afterMs } = planned;
    const isQuestion = kind === 'question';
    const type = 'reach.planned';
    session.receive('ways', { type, deliveryId, since, isQuestion, step, by, dueAt, afterMs });
  }

  return {
    hasSteps: steps.length > 0,
    wanted,
    send,
    stop,
    changed(id) {
      deliveries.showAgain(id);
      if (unit.ways.stateOf(id)?.done === true) unit.ways.forget(id);
    },
    resume() {
      for (const id of unit.ways.ids) {
        const way = stateOf(id);
        // The delivery of a finished plan has ended, and is no longer shown.
        if (way?.status === 'done') unit.ways.forget(id);
        else deliveries.showAgain(id);
        if (!way?.matches({ taken: 'sending' }) || sending.has(id)) continue;
        const { by } = way.context;
        const error = new TimeoutError(`The process ended while ${by} was sending`);
        if (ownValue(channels, by)?.idempotent !== false) send(id);
        else ended(id, 'failed', { error, mayRepeat: false });
      }
      const { pending, current } = unit.outbox.snapshot.context;
      for (const { deliveryId } of [...pending, ...(current ? [current] : [])]) wanted(deliveryId);
      for (const id of unit.questions.ids) wanted(id);
    },
    suspend() {
      for (const id of sending.keys()) stop(id);
    },
    async reached(key, receipt) {
      check('reached(key)', z.string(), key, INVALID);
      check('reached(key, receipt)', z.enum(['delivered', 'read']), receipt, INVALID);
      const [id, step] = subjectOf(key, session.id);
      const event = { type: 'reach.reported', step, receipt } as const;
      if (!unit.ways.accepts(id, event)) return false;
      session.receive(`reach:${id}`, event);
      await unit.unit.whenHandled();
      return true;
    },
    viewOf(deliveryId) {
      const way = stateOf(deliveryId) ?? stateOf(unit.batchOf(deliveryId) ?? '');
      if (!way) return undefined;
      const { by, dueAt, sent } = way.context;
      // A step that is due waits while the delivery is being told.
      const due = way.matches({ taken: 'sending' }) ? 'sending' : 'waiting';
      const state = typeof way.value === 'object' ? due : way.value;
      return { state, by, dueAt: state === 'waiting' ? dueAt : null, sent };
    },
  };
}

/** Returns the error itself or, if the channel threw an error of its own, an error with a code. */
function reported(cause: unknown, by: string): unknown {
  if (isA(cause, OffstageError)) return cause;
  return new ProviderError('CHANNEL_FAILED', `Channel "${by}": ${messageOf(cause)}`, { cause });
}

/** Returns the delivery and the step that a key identifies. */
function subjectOf(key: string, sessionId: string): [deliveryId: string, step: number] {
  const end = key.lastIndexOf('/');
  if (!key.startsWith(`${sessionId}/`)) return ['', -1];
  return [key.slice(sessionId.length + 1, end), Number(key.slice(end + 1))];
}

/** If a step becomes due during the quiet hours, adds the end of the quiet hours to its event (REACH-POLICY-2). */
export function withQuiet(
  options: ReachOptions | undefined,
  zone: string,
  event: EventFor<`reach:${string}`> & { readonly type: 'deadline.reach'; readonly at: number },
): EventFor<`reach:${string}`> & { readonly at: number } {
  const until = afterQuiet(options, event.at, zone);
  return until > event.at ? { ...event, until } : event;
}

/** Returns the time itself or, during the quiet hours, the end of the quiet hours. */
export function afterQuiet(
  { quiet }: Pick<Partial<ReachOptions>, 'quiet'> = {},
  at: number,
  zone: string,
): number {
  if (!quiet) return at;
  const { from, to, timeZone = zone } = quiet;
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'short' });
  const minutesAt = (time: number): number => minutesOf(clock.format(time));
  const [start, end] = [minutesOf(from), minutesOf(to)];
  const isQuiet = (time: number): boolean =>
    (minutesAt(time) - start + DAY) % DAY < (end - start + DAY) % DAY;
  let until = at;
  // On a day on which the clocks go back, some local times occur twice.
  while (isQuiet(until))
    until += ((end - minutesAt(until) + DAY) % DAY) * MINUTE_MS - (until % MINUTE_MS);
  // The clocks may have gone forward during the quiet hours.
  const early = until - ((minutesAt(until) - end + DAY) % DAY) * MINUTE_MS;
  return until > at && early > at && !isQuiet(early) ? early : until;
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}
