// A commit unit: one mailbox, and one transaction per event. A session with its questions, calls and outbox is one
// unit; each subagent is another. Units communicate only by messages.
//
// Owns:     the mailbox, the order *step, commit, install, release*, and the unit's deadlines.
// Does not: interpret effects, or depend on particular machines (the unit's body does).
//
// Invariants
//   COMMIT-UNIT-1. The unit handles one event at a time. An event that the body refuses leaves no entry.
//   COMMIT-UNIT-2. An event and its messages inside the unit form one step, which is taken on a draft (draft.ts) before
//       the append. Nothing is executed before the commit. The draft is installed after the commit, and the effects are
//       then released in order, through the router. If the step throws, the event is refused and leaves no entry.
//   COMMIT-UNIT-3. No event is lost when the journal fails: the event stays at the head of the queue and is retried.
//   COMMIT-UNIT-4. Events named `xstate.*` or `entry.*` belong to the runtime and are refused from outside.
//   COMMIT-UNIT-5. After `dispose`, no event is accepted, no deadline fires, and the journal is not retried.
//   COMMIT-UNIT-6. A refold restores the state, because the same entries lead to the same state. None of their effects
//       is executed again. The state determines which effects and deadlines are still due.
//   COMMIT-UNIT-7. If the journal refuses permanently (`retryable: false`), the unit stops in this process, because an
//       event that was not written has not happened and another process may have taken over.
//   COMMIT-UNIT-8. The consequences of an accepted event are never refused, however many events are queued. A full
//       mailbox refuses a new request before any part of it is executed.
//   COMMIT-UNIT-9. An event whose shape does not match its type is refused and leaves no entry. The unit makes an
//       event's texts storable before any component reads the event, so that the machines and the journal receive the
//       same event.
//   COMMIT-UNIT-10. An entry that cannot be refolded, because its shape is wrong or its step now throws, is quarantined
//       by a further entry. The unit continues as if the quarantined entry had not been written.
//   COMMIT-UNIT-11. `whenHandled` resolves when every event that was queued at the time of the call is committed or
//       refused. It rejects if the unit is disposed before then.

import type { DeadlineInput, MessageIn, Stamped } from '../../machines/index.ts';
import {
  CancelledError,
  CapacityError,
  OffstageError,
  ProtocolError,
  isA,
  messageOf,
} from '../../values/errors.ts';
import { storable, storableText } from '../../values/storable.ts';
import type { QuarantinedEntry } from '../contracts/session-views.ts';
import { JournalError, isForGood } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { Draft } from './draft.ts';
import { misshapen } from './event-shapes.ts';
import type { Host, Task } from './host.ts';
import type { Effect } from './hosting.ts';
import {
  QUARANTINED,
  UNIT,
  UnfoldableEntry,
  isQuarantine,
  quarantinedIn,
  type Quarantine,
} from './quarantine.ts';
import type {
  AnyProtocol,
  Message,
  Posted,
  UnitBody,
  UnitEvent,
  UnitIdentity,
} from './unit-body.ts';
import { upcast } from './upcasters.ts';

export type { Message, Posted, UnitBody, UnitEvent, UnitIdentity } from './unit-body.ts';

/** The mailbox limit. A longer queue means that the unit cannot keep up. */
const MAX_MAILBOX = 10_000;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
/** The interval at which a deadline that follows the clock checks the time, in milliseconds. */
const CLOCK_LOOK_MS = 30_000;

/** A unit with any protocol, for components that do not send events to it. */
export type AnyUnit = Omit<CommitUnit, 'receive' | 'resume'>;

/** `Protocol`: the unit's actors, and the events that each one accepts. */
export class CommitUnit<Protocol extends object = AnyProtocol> implements Task {
  readonly id: string;
  /** Holds the changes of the current step. */
  readonly draft: Draft;
  readonly #scope: string;
  readonly #host: Host;
  readonly #body: UnitBody;
  readonly #kind: string;
  readonly #version: number;
  #seq = 0;
  #paused = false;
  /** The queue; null if empty, so that thousands of idle units need neither an array nor its capacity. */
  #mailbox: Message[] | null = null;
  /** Whether the full mailbox was reported and has not been empty since. */
  #isBehind = false;
  #committing = false;
  /** Whether the unit is handling an event that has left the mailbox. */
  #isHandling = false;
  /** The callers of `whenHandled` that are still waiting; null if there are none. */
  #waiting: Waiting[] | null = null;
  #scheduled = false;
  #disposed = false;
  #posted: Release[] | null = null;
  #cancelRetry: (() => void) | null = null;
  /** The armed deadlines, by activity name; null if there are none. */
  #deadlines: Map<string, Deadline> | null = null;
  /** The entries that a refold has quarantined, until the journal records the quarantines. */
  #toQuarantine: readonly Quarantine[] = [];

  constructor(
    { id, scope, kind, definitionVersion }: UnitIdentity,
    host: Host,
    body: UnitBody,
    draft = new Draft(),
  ) {
    this.id = id;
    this.draft = draft;
    this.#scope = scope;
    this.#kind = kind;
    this.#version = definitionVersion;
    this.#host = host;
    this.#body = body;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Whether an event is waiting in the mailbox or for the journal. */
  get isBusy(): boolean {
    return this.#committing || this.#mailbox !== null;
  }

  /** Whether events are waiting until the journal has been read. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** The time of the earliest deadline, in milliseconds since 1970; `Infinity` if there is none. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { dueAt } of this.#deadlines?.values() ?? []) next = Math.min(next, dueAt);
    return next;
  }

  /** The number of entries that the unit has written. */
  get seq(): number {
    return this.#seq;
  }

  /**
   * Puts an event into the mailbox, which handles events in order (COMMIT-UNIT-8).
   * @throws {ProtocolError} for an event named `xstate.*` or `entry.*`.
   */
  receive<A extends keyof Protocol & string>(actor: A, event: Protocol[A] & UnitEvent): void {
    if (this.#disposed) return;
    if (event.type.startsWith('xstate.') || event.type.startsWith('entry.'))
      throw new ProtocolError(
        'RESERVED_EVENT',
        `Expected an event of the domain, got \`${event.type}\`: names that begin with "xstate." or "entry." are reserved`,
        { raw: event },
      );
    let kept: UnitEvent;
    try {
      kept = storable(event);
    } catch (error) {
      // A getter or a Proxy threw an error, so the event cannot be stored.
      this.#body.ignored?.(event, this.#refused(actor, event, error));
      return;
    }
    this.#admit(storableText(actor), kept);
  }

  /**
   * Throws if the mailbox has no room for a new request (COMMIT-UNIT-8).
   * @throws {CapacityError} `MAILBOX_FULL`: 10,000 events are queued.
   */
  checkRoom(): void {
    if (this.#isFull) throw mailboxFull(this.id, 'the unit refuses new input');
  }

  /** Resolves when all currently queued events are committed or refused (COMMIT-UNIT-11). */
  whenHandled(): Promise<void> {
    // A disposed unit drops its events.
    if (this.#disposed) return Promise.reject(notHandled(this.id));
    const left = (this.#mailbox?.length ?? 0) + Number(this.#isHandling);
    if (left === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      (this.#waiting ??= []).push({ left, resolve, reject });
    });
  }

  /** Adds an effect to the step of the current event. */
  post(actor: string, effect: Effect): void {
    // Outside a transaction, only a disposed unit's machines post effects.
    this.#posted?.push(new Release(this, actor, effect));
  }

  /** Runs `begin` as the unit's first transaction. It writes no entry, because its input is already known. */
  start(begin: () => void): void {
    const at = this.#host.environment.clock.now();
    try {
      this.#enqueue(this.#gather(begin, at));
    } catch (error) {
      this.#body.crashed(error);
    }
  }

  /** Keeps new events in the mailbox until `resume`, so that the journal's entries are folded first. */
  pause(): void {
    this.#paused = true;
  }

  /** Returns whether a queued event matches. */
  hasQueued(isMeant: (event: UnitEvent) => boolean): boolean {
    return this.#mailbox?.some(({ event }) => isMeant(event)) ?? false;
  }

  /** Handles `first`, and then the queued events. */
  resume(first?: MessageIn<Protocol> & Message): void {
    if (this.#disposed) return;
    this.#paused = false;
    const quarantined = this.#toQuarantine.map((event) => ({ actor: UNIT, event }));
    this.#toQuarantine = [];
    const before = first ? [...quarantined, first] : quarantined;
    if (before.length > 0) (this.#mailbox ??= []).unshift(...before);
    if (this.#mailbox) this.#wake();
  }

  /** Sets the number of the last entry without folding the entries up to that number. */
  setSequence(seq: number): void {
    this.#seq = seq;
  }

  /** Quarantines a snapshot that cannot be restored, in the same way as a refold quarantines entries. */
  quarantine(failure: UnfoldableEntry): void {
    this.#host.report(failure, `journal of ${this.id}`);
    const { seq, event, reason } = failure.entry;
    this.#toQuarantine = [...this.#toQuarantine, { type: QUARANTINED, seq, event, reason }];
  }

  /**
   * Writes the event that `make` returns, before any other event. If the unit is disposed, paused or busy, returns
   * false without calling `make`.
   */
  checkpoint(actor: string, make: () => UnitEvent): boolean {
    if (this.#disposed || this.#paused || this.isBusy) return false;
    this.#commit(actor, this.#step(actor, { ...make(), at: this.#host.environment.clock.now() }));
    return true;
  }

  /**
   * Folds the unit's journal entries, oldest first (COMMIT-UNIT-6). Quarantines the entries that cannot be folded
   * (COMMIT-UNIT-10) and returns them; `resume` writes the quarantines.
   * @throws {JournalError} `JOURNAL_GAP`, `JOURNAL_VERSION`; `UNFOLDABLE_ENTRY` if the host forbids quarantines.
   */
  refold(entries: readonly JournalEntry[]): readonly QuarantinedEntry[] {
    const known = quarantinedIn(entries);
    const found: QuarantinedEntry[] = [];
    for (const entry of entries) {
      const { seq } = entry;
      if (seq !== this.#seq + 1)
        throw new JournalError(
          'JOURNAL_GAP',
          `Expected entry ${this.#seq + 1} of ${this.id}, the journal has ${seq}: the entries between them were lost or cut`,
          { retryable: false },
        );
      const failure = known.has(seq) ? null : this.#refolded(entry);
      this.#seq = seq;
      if (!failure) continue;
      if (this.#host.onUnfoldable === 'lose') throw failure;
      found.push(failure.entry);
      this.quarantine(failure);
    }
    return found;
  }

  /** Folds an entry. Returns null if the entry has been folded; otherwise, returns the error. */
  #refolded(entry: JournalEntry): UnfoldableEntry | null {
    if (isQuarantine(entry.event)) {
      if (entry.event.ends) this.#body.endedBy?.(entry.event.reason);
      return null;
    }
    const { at, actor, event, reason } = this.#readable(entry);
    if (reason !== null) return this.#unfoldable(entry, reason);
    try {
      this.#step(actor, { ...event, at });
      this.draft.install();
      return null;
    } catch (error) {
      return this.#unfoldable(entry, messageOf(error), error);
    }
  }

  /** Returns the entry converted to this version. `reason`: why this version cannot read the entry; null if it can. */
  #readable(entry: JournalEntry): JournalEntry & { readonly reason: string | null } {
    try {
      const read = upcast(entry, { kind: this.#kind, version: this.#version });
      return { ...read, reason: misshapen(read.event, this.#body.shapes) };
    } catch (error) {
      if (error instanceof JournalError) throw error;
      return { ...entry, reason: messageOf(error) };
    }
  }

  #unfoldable(
    { seq, event }: Pick<JournalEntry, 'seq' | 'event'>,
    reason: string,
    cause?: unknown,
  ): UnfoldableEntry {
    const { id: unit } = this;
    const entry = { scope: this.#scope, unit, seq, event: event.type, reason };
    return new UnfoldableEntry(entry, cause);
  }

  /** For replays: returns whether the unit would accept the journal's next entry. */
  wouldAccept(entry: JournalEntry): boolean {
    const { at, actor, event, reason } = this.#readable(entry);
    return reason === null && this.#body.take(actor, { ...event, at }) !== null;
  }

  /** Enqueues the effects that are still due after `refold`, as if they were posted now. */
  releaseDue(due: readonly Posted[]): void {
    this.#enqueue(due.map(({ actor, effect }) => new Release(this, actor, effect)));
  }

  /** Handles the mailbox's next event. Called by the router. */
  run(): void {
    this.#scheduled = false;
    if (this.#disposed || this.#committing || this.#paused) return;
    const message = this.#mailbox?.shift();
    if (!message) return;
    if (this.#mailbox?.length === 0) {
      this.#mailbox = null;
      this.#isBehind = false;
    }
    this.#isHandling = true;
    const at = this.#host.environment.clock.now();
    const { actor } = message;
    const event = { ...message.event, at };
    const judged = this.#judged(actor, event);
    if ('entry' in judged) this.#commit(actor, judged);
    else {
      const { refused } = judged;
      this.#body.ignored?.(event, refused);
      this.#host.ignored(this.id, actor, event);
      this.#handled();
    }
    if (!this.#committing && this.#mailbox) this.#wake();
  }

  /** Executes an effect; called by the router. */
  release(posted: Posted): void {
    const { actor, effect } = posted;
    if (effect.kind === 'do' || effect.name !== 'deadline') this.#body.release(posted);
    else if (effect.kind === 'start') this.#arm(actor, effect.id, effect.input);
    else this.#disarm(`${actor}/${effect.id}`);
  }

  /** Drops the queued events, cancels the deadlines, and rejects everything that waits for the unit. */
  dispose(): void {
    this.#disposed = true;
    this.#mailbox = null;
    this.#cancelRetry?.();
    for (const { cancel } of this.#deadlines?.values() ?? []) cancel();
    this.#deadlines = null;
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const { reject } of waiting) reject(notHandled(this.id));
  }

  /** Marks the current event as committed or refused (COMMIT-UNIT-11). */
  #handled(): void {
    if (!this.#isHandling) return;
    this.#isHandling = false;
    if (!this.#waiting) return;
    for (const one of this.#waiting) one.left -= 1;
    const over = this.#waiting.filter(({ left }) => left === 0);
    this.#waiting =
      over.length === this.#waiting.length ? null : this.#waiting.filter(({ left }) => left > 0);
    for (const { resolve } of over) resolve();
  }

  get #isFull(): boolean {
    return (this.#mailbox?.length ?? 0) >= MAX_MAILBOX;
  }

  #admit(actor: string, event: UnitEvent): void {
    const isFull = this.#isFull;
    (this.#mailbox ??= []).push({ actor, event });
    if (isFull && !this.#isBehind) {
      this.#isBehind = true;
      this.#host.report(
        mailboxFull(this.id, 'the unit still keeps every event that follows from accepted input'),
        'mailbox',
      );
    }
    this.#wake();
  }

  #wake(): void {
    if (this.#scheduled || this.#committing || this.#paused) return;
    this.#scheduled = true;
    this.#host.router.enqueue(this);
  }

  /**
   * Returns the event's step, or a refusal. The refusal contains the error if the event cannot be checked or its step
   * throws. It contains null if the event has no meaning in this state. Such an error is reported and does not block
   * later events.
   */
  #judged(actor: string, event: UnitEvent & Stamped): Step | Refused {
    // `resume` queued this event. No other component may send such an event (COMMIT-UNIT-4).
    if (event.type === QUARANTINED) return { entry: event, posted: [] };
    try {
      const reason = misshapen(event, this.#body.shapes);
      if (reason !== null)
        throw new ProtocolError(
          'MALFORMED_EVENT',
          `Expected a \`${event.type}\` as it is declared, got ${reason}`,
          { raw: event },
        );
      const entry = this.#body.take(actor, event);
      return entry ? this.#step(actor, entry) : { refused: null };
    } catch (error) {
      return { refused: this.#refused(actor, event, error) };
    }
  }

  /** Takes an event's step. The changes take effect when the draft is installed. */
  #step(actor: string, entry: UnitEvent & Stamped): Step {
    const fold = () => this.#gather(() => this.#body.apply(actor, entry), entry.at);
    return { entry, posted: this.draft.step(fold) };
  }

  #refused(actor: string, { type }: UnitEvent, error: unknown): OffstageError {
    this.#host.report(error, `${this.id}: \`${type}\` for ${actor}`);
    if (isA(error, OffstageError)) return error;
    return new OffstageError('INTERNAL', messageOf(error), { cause: error });
  }

  #commit(actor: string, step: Step, retryMs = FIRST_RETRY_MS): void {
    const { entry: event } = step;
    const entry: JournalEntry = {
      scope: this.#scope,
      unit: this.id,
      seq: this.#seq + 1,
      at: event.at,
      actor,
      definitionVersion: this.#version,
      event,
    };
    let appended: void | Promise<void>;
    try {
      appended = this.#host.journal.append(entry);
    } catch (error) {
      this.#retry(actor, step, retryMs, error);
      return;
    }
    if (appended === undefined) {
      this.#committed(step);
      return;
    }
    this.#committing = true;
    // A promise from another library may not be an instance of Promise.
    Promise.resolve(appended).then(
      () => {
        this.#committing = false;
        if (this.#disposed) return;
        this.#committed(step);
        if (this.#mailbox) this.#wake();
      },
      (error: unknown) => this.#retry(actor, step, retryMs, error),
    );
  }

  #retry(actor: string, step: Step, retryMs: number, error: unknown): void {
    if (this.#disposed) return;
    if (isForGood(error)) {
      this.#body.journalRefused(error);
      return;
    }
    this.#committing = true;
    this.#host.report(error, `journal of ${this.id}`);
    this.#cancelRetry = this.#host.environment.scheduler.schedule(() => {
      this.#cancelRetry = null;
      this.#committing = false;
      this.#commit(actor, step, Math.min(retryMs * 2, LAST_RETRY_MS));
      if (!this.#committing && this.#mailbox) this.#wake();
    }, retryMs);
  }

  #committed({ posted }: Step): void {
    this.#seq += 1;
    this.#handled();
    try {
      this.draft.install();
    } catch (error) {
      this.#body.crashed(error);
      return;
    }
    this.#enqueue(posted);
  }

  #enqueue(posted: readonly Release[]): void {
    if (posted.length > 0) this.#host.router.enqueueAll(posted);
  }

  /** Runs one transaction. Messages within the unit are effects too, and are handled until none are left. */
  #gather(begin: () => void, at: number): readonly Release[] {
    const posted: Release[] = [];
    this.#posted = posted;
    try {
      begin();
      for (let next = 0; ;) {
        const one = posted[next];
        const messages = one ? this.#body.route?.(one) : this.#body.settle?.(at);
        if (one) next += 1;
        else if (!messages || messages.length === 0) break;
        if (messages) this.#deliver(messages, at);
      }
    } finally {
      this.#posted = null;
    }
    return posted;
  }

  #deliver(messages: readonly Message[], at: number): void {
    for (const { actor, event } of messages) {
      const taken = this.#body.take(actor, { ...event, at });
      if (taken) this.#body.apply(actor, taken);
    }
  }

  #arm(actor: string, id: string, input: unknown): void {
    if (this.#disposed) return;
    const { dueAt, event: type, byClock = false } = input as DeadlineInput;
    const key = `${actor}/${id}`;
    this.#disarm(key);
    const { clock, scheduler } = this.#host.environment;
    const wait = (): (() => void) => {
      const leftMs = dueAt - clock.now();
      return scheduler.schedule(
        () => {
          if (byClock && clock.now() < dueAt) cancel = wait();
          else {
            this.#forget(key);
            const due: Due = { type, dueAt };
            this.#admit(actor, due);
          }
        },
        byClock ? Math.min(leftMs, CLOCK_LOOK_MS) : leftMs,
      );
    };
    let cancel = wait();
    (this.#deadlines ??= new Map()).set(key, { dueAt, cancel: () => cancel() });
  }

  #disarm(key: string): void {
    this.#deadlines?.get(key)?.cancel();
    this.#forget(key);
  }

  #forget(key: string): void {
    this.#deadlines?.delete(key);
    if (this.#deadlines?.size === 0) this.#deadlines = null;
  }
}

function mailboxFull(id: string, but: string): CapacityError {
  return new CapacityError('MAILBOX_FULL', `${id}: ${MAX_MAILBOX} events wait already; ${but}`);
}

function notHandled(id: string): CancelledError {
  return new CancelledError(
    `${id} ended, or was suspended, before it had kept what was asked of it`,
  );
}

interface Waiting {
  left: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** An event's step: the entry, and the effects to release after the entry is written. */
interface Step {
  readonly entry: UnitEvent & Stamped;
  readonly posted: readonly Release[];
}

interface Refused {
  readonly refused: OffstageError | null;
}

interface Deadline {
  readonly dueAt: number;
  readonly cancel: () => void;
}

/** The event that is sent when a deadline is due. */
interface Due extends UnitEvent {
  readonly dueAt: number;
}

/** An effect that is waiting for release. */
class Release implements Posted, Task {
  readonly actor: string;
  readonly effect: Effect;
  readonly #unit: Pick<CommitUnit, 'release'>;

  constructor(unit: Pick<CommitUnit, 'release'>, actor: string, effect: Effect) {
    this.actor = actor;
    this.effect = effect;
    this.#unit = unit;
  }

  run(): void {
    this.#unit.release(this);
  }
}
