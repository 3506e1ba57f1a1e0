// A session as screens see it: a stream of its events, and a store of its state. Events are emitted immediately. The
// store is updated one or two turns of the event loop later, and only if it has ever been read. Ten thousand changes
// therefore produce one new state.
//
// Owns:     views, the order of events, the choice of the views to store, and the store's listeners.
// Does not: decide anything about the session.
//
// Invariants
//   KEPT-VIEWS-1. An open view is always stored. Of the other views, the latest are stored, up to a limit.
//   KEPT-VIEWS-2. The cost of a change does not depend on the number of views. A list is rebuilt only when it is read
//       after a change.
//   KEPT-VIEWS-3. Views and lists are frozen, because the session reads them too and a screen must not change them.
//   EVENT-ORDER-1. Every subscriber receives the events in the same order. If a subscriber causes an event while it
//       handles another, the new event is emitted afterwards. Otherwise, later subscribers would receive the newer
//       state first and be left with the older one.
//   SESSION-STORE-1. When the session ends, all subscribers are released. Otherwise, an app that holds on to the store
//       would keep the listeners, their screens and the session in memory. (V8 immediately moves the functions of
//       @xstate/store's subscriptions to the old generation, with everything that they reference.)
//   SESSION-STORE-2. If one listener throws, the others are still notified.
//   SESSION-STORE-3. Only `replace` changes the state. The store's `send` and `trigger` throw `READ_ONLY_STORE`,
//       because the store shows the session's state and accepts no events.

import { createStore } from '@xstate/store';
import { Subject, type Observable } from 'rxjs';
import { ConfigurationError } from '../../../values/errors.ts';
import type { AnsweredQuestion, QuestionRecord } from '../../contracts/records.ts';
import { NO_LEAD_USAGE, NO_USAGE, usageOfBoth } from '../../contracts/usage.ts';
import { guarded } from '../../runtime/guarded-stream.ts';
import type { Host } from '../../runtime/host.ts';
import {
  KEPT_VIEWS,
  withSchedule,
  type DeliveryView,
  type QuestionView,
  type SessionEvent,
  type SessionState,
  type SubagentView,
  type TranscriptItem,
} from '../../contracts/session-views.ts';

const NOTHING_USED = usageOfBoth(NO_LEAD_USAGE, NO_USAGE);

export class Projection {
  readonly #host: Pick<Host, 'environment' | 'report'>;
  readonly #published = new Subject<SessionEvent>();
  readonly #events: Observable<SessionEvent>;
  /** The event that subscribers are receiving, and the events that it has caused. */
  readonly #unpublished: SessionEvent[] = [];
  readonly #transcript = new KeptViews<TranscriptItem>(KEPT_VIEWS.transcript, ({ final }) => final);
  readonly #subagents = new KeptViews<SubagentView>(KEPT_VIEWS.subagents, isEnded);
  readonly #questions = new KeptViews<QuestionView>(KEPT_VIEWS.questions, isSettled);
  readonly #deliveries = new KeptViews<DeliveryView>(KEPT_VIEWS.deliveries, isGone);
  #connection: SessionState['connection'] = 'created';
  #outage: SessionState['outage'] = null;
  #floor: SessionState['floor'] = 'nobody';
  #agent: string | null = null;
  #schedules: SessionState['schedules'] = [];
  #present: SessionState['present'] = [];
  #usage = NOTHING_USED;
  #limits: SessionState['limits'] = [];
  #created: CreatedStore | null = null;
  /** Whether the store is out of date. */
  #isDirty = false;
  #isComplete = false;

  /** @param report Receives the errors of event subscribers. @defaultValue the host's reporter */
  constructor(
    host: Pick<Host, 'environment' | 'report'>,
    report: Host['report'] = (error, where) => host.report(error, where),
  ) {
    this.#host = host;
    this.#events = guarded(this.#published, { report }, 'events');
  }

  /** The store, which is updated when it is read. */
  get store(): SessionStore {
    if (this.#isDirty) this.flush();
    this.#created ??= createSessionStore(this.#state, (error) => this.#threw(error));
    return this.#created.store;
  }

  get events(): Observable<SessionEvent> {
    return this.#events;
  }

  get connection(): SessionState['connection'] {
    return this.#connection;
  }

  get usage(): SessionState['usage'] {
    return this.#usage;
  }

  get transcript(): readonly TranscriptItem[] {
    return this.#transcript.list;
  }

  item(id: string): TranscriptItem | undefined {
    return this.#transcript.get(id);
  }

  question(requestId: string): QuestionView | undefined {
    return this.#questions.get(requestId);
  }

  /** Updates the views of approvals that are no longer in effect. */
  endLasting(isEnded: (question: QuestionView) => boolean): void {
    for (const question of this.#questions.list) {
      if (question.state !== 'answered' || !question.lasts || !isEnded(question)) continue;
      const { lasts: _, ...shown } = question;
      this.emit({ type: 'question.changed', question: shown });
    }
  }

  delivery(deliveryId: string): DeliveryView | undefined {
    return this.#deliveries.get(deliveryId);
  }

  deliveries(): readonly DeliveryView[] {
    return this.#deliveries.list;
  }

  subagent(id: string): SubagentView | undefined {
    return this.#subagents.get(id);
  }

  subagents(): readonly SubagentView[] {
    return [...this.#subagents.list];
  }

  /** Emits an event and applies it to the state. */
  emit(event: SessionEvent): void {
    if (this.#isComplete) return;
    switch (event.type) {
      case 'connection.changed':
        if (this.#connection === event.state) return;
        this.#connection = event.state;
        this.#outage = event.outage ?? null;
        break;
      case 'floor.changed':
        if (this.#floor === event.floor) return;
        this.#floor = event.floor;
        break;
      case 'transcript.changed':
        this.#transcript.set(event.item.id, event.item);
        break;
      case 'subagent.changed':
        if (looksSame(this.#subagents.get(event.subagent.id), event.subagent)) return;
        this.#subagents.set(event.subagent.id, event.subagent);
        break;
      case 'question.changed':
        if (looksSame(this.#questions.get(event.question.requestId), event.question)) return;
        this.#questions.set(event.question.requestId, event.question);
        break;
      case 'delivery.changed':
        if (looksSame(this.#deliveries.get(event.delivery.deliveryId), event.delivery)) return;
        this.#deliveries.set(event.delivery.deliveryId, event.delivery);
        break;
      case 'schedule.changed':
        this.#schedules = withSchedule(this.#schedules, event.schedule);
        break;
      case 'presence.changed':
        this.#present = event.present;
        break;
      case 'agent.entered':
        this.#agent = event.agentName;
        break;
      case 'usage.changed':
        if (event.used === undefined && isSameUse(this.#usage, event.usage)) return;
        this.#usage = event.usage;
        break;
      case 'limits.changed':
        this.#limits = event.limits;
        break;
      case 'agent.exited':
      case 'transfer.completed':
      case 'transfer.failed':
      case 'turn.ended':
      case 'subagent.delegated':
      case 'subagent.progressed':
      case 'subagent.ended':
      case 'conversation.summarised':
      case 'memory.distilled':
      case 'client.json':
      case 'service.changed':
      case 'service.dropped':
      case 'session.recovered':
      case 'session.suspended':
      case 'session.ended':
      case 'tool.in_doubt':
      case 'tool.called':
      case 'tool.answered':
      case 'client_call.changed':
      case 'playout.clear':
      case 'speech.interrupted':
      case 'speech.resumed':
      case 'user.away':
      case 'user.back':
      case 'backchannel.heard':
      case 'utterance.routed':
      case 'utterance.unanswered':
      case 'error.reported':
        this.#publish(event);
        return;
    }
    this.#publish(event);
    this.#schedule();
  }

  /** EVENT-ORDER-1 */
  #publish(event: SessionEvent): void {
    this.#unpublished.push(event);
    if (this.#unpublished.length > 1) return;
    for (let next = this.#unpublished[0]; next; next = this.#unpublished[0]) {
      this.#published.next(next);
      this.#unpublished.shift();
    }
    if (this.#isComplete) this.#published.complete();
  }

  /** Completes the stream. Nothing changes afterwards. */
  complete(): void {
    this.flush();
    this.#isComplete = true;
    if (this.#unpublished.length === 0) this.#published.complete();
    this.#created?.release();
  }

  /** Updates the store. */
  flush(): void {
    this.#isDirty = false;
    try {
      this.#created?.replace(this.#state);
    } catch (error) {
      // A selector (`store.select`) has thrown an error. It must not end the session in the middle of a change.
      this.#threw(error);
    }
  }

  #threw(error: unknown): void {
    this.#host.report(error, 'listener of the store');
  }

  get #state(): SessionState {
    return {
      connection: this.#connection,
      outage: this.#outage,
      floor: this.#floor,
      agent: this.#agent,
      transcript: this.#transcript.list.toSorted((a, b) => a.at - b.at),
      subagents: this.#subagents.list,
      questions: this.#questions.list,
      deliveries: this.#deliveries.list,
      schedules: this.#schedules,
      present: this.#present,
      usage: this.#usage,
      limits: this.#limits,
    };
  }

  #schedule(): void {
    if (!this.#created || this.#isDirty) return;
    this.#isDirty = true;
    const { scheduler } = this.#host.environment;
    // The update runs after all waiting work, because answering the user is more urgent than updating a screen.
    scheduler.yieldThen(() =>
      scheduler.yieldThen(() => {
        if (this.#isDirty) this.flush();
      }),
    );
  }
}

function isSameUse(before: SessionState['usage'], after: SessionState['usage']): boolean {
  return before.lead === after.lead && before.subagents === after.subagents;
}

/** Returns whether two states of a view look the same on a screen. */
function looksSame<T extends object>(before: T | undefined, after: T): boolean {
  if (!before) return false;
  const keys = Object.keys(after) as (keyof T)[];
  return (
    keys.length === Object.keys(before).length &&
    keys.every((key) => Object.is(before[key], after[key]))
  );
}

const isEnded = ({ endedAt }: SubagentView): boolean => endedAt !== null;

const isSettled = ({ state, lasts }: QuestionView): boolean =>
  (state === 'answered' && !lasts) ||
  state === 'expired' ||
  state === 'withdrawn' ||
  state === 'superseded';

const isGone = ({ state }: DeliveryView): boolean =>
  state === 'delivered' || state === 'dismissed' || state === 'dropped';

/** The state of a question's machine. */
interface QuestionState {
  readonly value: unknown;
  readonly context: unknown;
}

/** Returns a question's view, from its record and its machine's state. */
export function questionView(
  record: QuestionRecord,
  { value, context }: QuestionState,
): QuestionView {
  const { requestId, subagentId, subagentName, kind, question, options } = record;
  const { askedAt, timeoutMs, answer, action, answerableBy, byButton, reason, put } = record;
  const { proposed, mayDiffer, answeredAt } = record;
  const isUnanswered = value === 'expired' || value === 'withdrawn' || value === 'superseded';
  const lasts = isUnanswered ? undefined : (answer ?? proposed)?.lasts;
  const open = proposed && { input: proposed.changed.input, question: proposed.question };
  const changed = answer ? answer.changed && { input: answer.changed.input } : open;
  return {
    // The given id may be a slice of an actor's name, and V8 would then keep the whole name in memory.
    requestId,
    subagentId,
    subagentName,
    kind,
    question,
    options,
    state: value === 'held' || value === 'reading' ? 'open' : (value as QuestionView['state']),
    askedAt,
    dueAt: value === 'open' ? (context as { dueAt: number }).dueAt : null,
    ...(value === 'held' && { heldUntil: (context as { remindAt: number }).remindAt }),
    timeoutMs,
    answer: answer?.userResponse ?? null,
    ...(reason === undefined ? {} : { reason }),
    ...(action ? { action } : {}),
    ...(changed && { changed }),
    ...(mayDiffer !== undefined && { mayDiffer }),
    ...(lasts && { lasts }),
    ...(byButton && { byButton }),
    ...(answerableBy ? { answerableBy } : {}),
    ...(answer?.by === undefined ? {} : { answeredBy: answer.by }),
    ...(value === 'answered' && answeredAt !== undefined && { answeredAt }),
    ...(put && put.times > 1 && { putAgain: put }),
  };
}

/**
 * Returns the views of approvals still in effect. `isLive`: returns whether a subagent is still running. @defaultValue
 * true
 */
export function lastingViews(
  lasting: readonly AnsweredQuestion[],
  isLive: (subagentId: string) => boolean = () => true,
): readonly QuestionView[] {
  return lasting.flatMap((question) => {
    if (question.answer.lasts === 'task' && !isLive(question.subagentId)) return [];
    const { answeredAt: askedAt } = question;
    const record = { ...question, askedAt, timesUnclear: 0, askedAgain: false, readBack: false };
    return [questionView(record, { value: 'answered', context: null })];
  });
}

/** The views of one kind in order of creation: all open views, and the latest of the others. */
export class KeptViews<T> {
  readonly #kept: number;
  readonly #isOver: (view: T) => boolean;
  readonly #views = new Map<string, T>();
  /** Ids of views that are over, in the order in which they ended. */
  readonly #over = new Set<string>();
  #list: readonly T[] | null = null;

  /** `kept`: the maximum number of stored views that are over (`isOver`). */
  constructor(kept: number, isOver: (view: T) => boolean) {
    this.#kept = kept;
    this.#isOver = isOver;
  }

  /** The list of views. The array is replaced only when a view changes. */
  get list(): readonly T[] {
    return (this.#list ??= Object.freeze([...this.#views.values()]));
  }

  get(id: string): T | undefined {
    return this.#views.get(id);
  }

  set(id: string, view: T): void {
    this.#views.set(id, Object.freeze(view));
    this.#list = null;
    if (this.#isOver(view)) this.#over.add(id);
    else this.#over.delete(id);
    for (const oldest of this.#over) {
      if (this.#over.size <= this.#kept) return;
      this.#over.delete(oldest);
      this.#views.delete(oldest);
    }
  }
}

function storeOf(state: SessionState) {
  return createStore({
    context: state,
    on: { replaced: (_: SessionState, event: { state: SessionState }) => event.state },
  });
}

type OwnStore = ReturnType<typeof storeOf>;

/** An @xstate/store store that can be read, subscribed to and selected from, but not changed. */
export type SessionStore = Omit<OwnStore, 'send' | 'trigger'> & {
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_STORE`: use the session's methods. */
  readonly send: (event: unknown) => never;
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_STORE`: use the session's methods. */
  readonly trigger: { readonly replaced: (payload: unknown) => never };
};

type Snapshot = ReturnType<SessionStore['getSnapshot']>;

type Observe = (snapshot: Snapshot) => void;

type Observer = Observe | { readonly next?: Observe };

export interface CreatedStore {
  readonly store: SessionStore;
  /** Replaces the state, and notifies the listeners (SESSION-STORE-3). */
  replace(state: SessionState): void;
  /** Releases all subscribers (SESSION-STORE-1). */
  release(): void;
}

/** Creates the store. `threw` receives errors that listeners throw. */
export function createSessionStore(
  state: SessionState,
  threw: (error: unknown) => void,
): CreatedStore {
  const store = storeOf(state);
  const { send } = store;
  const all: Listeners = { listeners: new Set(), threw };
  const subscribe = store.subscribe.bind(store);
  store.subscribe = (observer: Observer) => {
    const listener = new Listener(observer, all);
    listener.subscription = subscribe(listener);
    // An arrow function, because `useSelector` calls `unsubscribe` without a receiver.
    return { unsubscribe: () => listener.leave() };
  };
  const release = (): void => {
    for (const listener of all.listeners) listener.leave();
    all.threw = null;
  };
  return {
    store: Object.assign(store, readOnly),
    replace: (to) => send({ type: 'replaced', state: to }),
    release,
  };
}

function refuse(what: string): never {
  throw new ConfigurationError(
    'READ_ONLY_STORE',
    `${what}: the store of a session is read-only, since it shows what is in the journal. Use the methods of the session instead (sendText, answer, shown, dismiss, subagents.cancel, close)`,
  );
}

const readOnly = {
  send: (): never => refuse('store.send(event)'),
  trigger: Object.freeze({ replaced: (): never => refuse('store.trigger.replaced(payload)') }),
};

interface Listeners {
  readonly listeners: Set<Listener>;
  /** Null once released. This function also holds a reference to the session (SESSION-STORE-1). */
  threw: ((error: unknown) => void) | null;
}

class Listener {
  #observer: Observer | null;
  readonly #all: Listeners;
  subscription: { unsubscribe(): void } | null = null;

  constructor(observer: Observer, all: Listeners) {
    this.#observer = observer;
    this.#all = all;
    all.listeners.add(this);
  }

  next(snapshot: Snapshot): void {
    try {
      if (typeof this.#observer === 'function') this.#observer(snapshot);
      else this.#observer?.next?.(snapshot);
    } catch (error) {
      this.#all.threw?.(error);
    }
  }

  leave(): void {
    this.#observer = null;
    this.subscription?.unsubscribe();
    this.subscription = null;
    this.#all.listeners.delete(this);
  }
}
