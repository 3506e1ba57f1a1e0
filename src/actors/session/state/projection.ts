// The session for screens: the stream of its events, and a store of its state. Events go out at once; the
// store follows in bulk, a turn or two of the event loop later, so that ten thousand changes are one new
// state, and only once the store has been read.
//
// Owns:     views, the order of events, the number of kept views that are over.
// Does not: decide anything.

import { Subject, type Observable } from 'rxjs';
import type { Host } from '../../runtime/host.ts';
import type {
  DeliveryView,
  QuestionView,
  SessionEvent,
  SessionState,
  SubagentView,
  TranscriptItem,
} from '../../contracts/session-views.ts';
import { KeptViews } from './kept-views.ts';
import { createSessionStore, type CreatedStore, type SessionStore } from './session-store.ts';

/** Number of views that are over and stay readable. */
const KEPT = { transcript: 500, subagents: 100, questions: 50, deliveries: 100 } as const;

export class Projection {
  readonly #host: Pick<Host, 'environment' | 'report'>;
  readonly #events = new Subject<SessionEvent>();
  readonly #transcript = new KeptViews<TranscriptItem>(KEPT.transcript, ({ final }) => final);
  readonly #subagents = new KeptViews<SubagentView>(KEPT.subagents, isEnded);
  readonly #questions = new KeptViews<QuestionView>(KEPT.questions, isOver);
  readonly #deliveries = new KeptViews<DeliveryView>(KEPT.deliveries, isGone);
  #connection: SessionState['connection'] = 'created';
  #floor: SessionState['floor'] = 'nobody';
  #agent: string | null = null;
  #usage: SessionState['usage'] = { inputTokens: null, outputTokens: null };
  #limits: SessionState['limits'] = [];
  #created: CreatedStore | null = null;
  /** True while the store lacks a change. */
  #isDirty = false;
  #isComplete = false;

  constructor(host: Pick<Host, 'environment' | 'report'>) {
    this.#host = host;
  }

  /** The store, up to date when it is read. */
  get store(): SessionStore {
    if (this.#isDirty) this.flush();
    this.#created ??= createSessionStore(this.#state, (error) => this.#threw(error));
    return this.#created.store;
  }

  get events(): Observable<SessionEvent> {
    return this.#events.asObservable();
  }

  get connection(): SessionState['connection'] {
    return this.#connection;
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

  /** Emits the event and applies it to the state. */
  emit(event: SessionEvent): void {
    if (this.#isComplete) return;
    switch (event.type) {
      case 'connection.changed':
        if (this.#connection === event.state) return;
        this.#connection = event.state;
        break;
      case 'floor.changed':
        if (this.#floor === event.floor) return;
        this.#floor = event.floor;
        break;
      case 'transcript.changed':
        this.#transcript.set(event.item.id, event.item);
        break;
      case 'subagent.changed':
        if (isSame(this.#subagents.get(event.subagent.id), event.subagent)) return;
        this.#subagents.set(event.subagent.id, event.subagent);
        break;
      case 'question.changed':
        if (isSame(this.#questions.get(event.question.requestId), event.question)) return;
        this.#questions.set(event.question.requestId, event.question);
        break;
      case 'delivery.changed':
        if (isSame(this.#deliveries.get(event.delivery.deliveryId), event.delivery)) return;
        this.#deliveries.set(event.delivery.deliveryId, event.delivery);
        break;
      case 'agent.entered':
        this.#agent = event.agentName;
        break;
      case 'usage.changed':
        this.#usage = event.usage;
        break;
      case 'limits.changed':
        this.#limits = event.limits;
        break;
      // These change nothing in the store.
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
      case 'playout.clear':
      case 'speech.interrupted':
      case 'speech.resumed':
      case 'backchannel.heard':
      case 'error.reported':
        this.#events.next(event);
        return;
    }
    this.#events.next(event);
    this.#schedule();
  }

  /** Completes the stream: nothing changes after this. */
  complete(): void {
    this.flush();
    this.#isComplete = true;
    this.#events.complete();
    this.#created?.release();
  }

  /** Brings the store up to date. */
  flush(): void {
    this.#isDirty = false;
    try {
      this.#created?.replace(this.#state);
    } catch (error) {
      // A selector (`store.select`) threw; the session must not end in the middle of a change for it.
      this.#threw(error);
    }
  }

  #threw(error: unknown): void {
    this.#host.report(error, 'listener of the store');
  }

  get #state(): SessionState {
    return {
      connection: this.#connection,
      floor: this.#floor,
      agent: this.#agent,
      transcript: this.#transcript.list.toSorted((a, b) => a.at - b.at),
      subagents: this.#subagents.list,
      questions: this.#questions.list,
      deliveries: this.#deliveries.list,
      usage: this.#usage,
      limits: this.#limits,
    };
  }

  #schedule(): void {
    if (!this.#created || this.#isDirty) return;
    this.#isDirty = true;
    const { scheduler } = this.#host.environment;
    // Behind the work that waits already: an answer is urgent, a screen is not.
    scheduler.yieldThen(() =>
      scheduler.yieldThen(() => {
        if (this.#isDirty) this.flush();
      }),
    );
  }
}

/** Tells whether a screen would show both in the same way. */
function isSame<T extends object>(before: T | undefined, after: T): boolean {
  if (!before) return false;
  const keys = Object.keys(after) as (keyof T)[];
  return keys.every((key) => Object.is(before[key], after[key]));
}

const isEnded = ({ endedAt }: SubagentView): boolean => endedAt !== null;

const isOver = ({ state }: QuestionView): boolean =>
  state === 'answered' || state === 'expired' || state === 'withdrawn' || state === 'superseded';

const isGone = ({ state }: DeliveryView): boolean =>
  state === 'delivered' || state === 'dismissed' || state === 'dropped';
