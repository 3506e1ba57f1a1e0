// What screens see of a session: the stream of its events, and a store of its state.
// Events go out at once; the store follows in bulk, a turn or two of the event loop later,
// so that ten thousand changes are one new state, and only once somebody has looked at it.
//
// Owns:     views, the order of events, how many ended things are kept.
// Does not: decide anything.

import { createStore } from '@xstate/store';
import { Subject, type Observable } from 'rxjs';
import type { Environment } from '../ports/environment.ts';
import type {
  DeliveryView,
  QuestionView,
  SessionEvent,
  SessionState,
  SubagentView,
  TranscriptItem,
} from '../session-views.ts';

/** Of what is over, so much is kept for a look back. */
const KEPT = { transcript: 500, subagents: 100, questions: 50, deliveries: 100 } as const;

/** Where nobody looks at the store, what is long over is forgotten after so many changes. */
const TRIM_EVERY = 500;

export function createSessionStore(state: SessionState) {
  return createStore({
    context: state,
    on: { replaced: (_: SessionState, event: { state: SessionState }) => event.state },
  });
}

export type SessionStore = ReturnType<typeof createSessionStore>;

export class Projection {
  readonly #environment: Environment;
  readonly #events = new Subject<SessionEvent>();
  readonly #transcript = new Map<string, TranscriptItem>();
  readonly #subagents = new Map<string, SubagentView>();
  readonly #questions = new Map<string, QuestionView>();
  readonly #deliveries = new Map<string, DeliveryView>();
  #connection: SessionState['connection'] = 'created';
  #floor: SessionState['floor'] = 'nobody';
  #agent: string | null = null;
  #store: SessionStore | null = null;
  /** There is something that the store does not have. */
  #isDirty = false;
  #changes = 0;
  #isComplete = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Up to date at the moment it is asked for. */
  get store(): SessionStore {
    if (!this.#store || this.#isDirty) this.flush();
    this.#store ??= createSessionStore(this.#state);
    return this.#store;
  }

  get events(): Observable<SessionEvent> {
    return this.#events.asObservable();
  }

  get connection(): SessionState['connection'] {
    return this.#connection;
  }

  question(requestId: string): QuestionView | undefined {
    return this.#questions.get(requestId);
  }

  delivery(deliveryId: string): DeliveryView | undefined {
    return this.#deliveries.get(deliveryId);
  }

  subagent(id: string): SubagentView | undefined {
    return this.#subagents.get(id);
  }

  subagents(): readonly SubagentView[] {
    return [...this.#subagents.values()];
  }

  /** Emits the event and keeps what it says of the state. */
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
      // These change nothing that lasts.
      case 'agent.exited':
      case 'transfer.completed':
      case 'transfer.failed':
      case 'turn.ended':
      case 'subagent.delegated':
      case 'conversation.summarised':
      case 'memory.distilled':
      case 'client.json':
      case 'service.changed':
      case 'service.dropped':
      case 'session.ended':
      case 'tool.called':
      case 'tool.answered':
      case 'playout.clear':
      case 'speech.interrupted':
      case 'error.reported':
        break;
    }
    this.#events.next(event);
    this.#schedule();
  }

  /** Nothing changes after this. */
  complete(): void {
    this.flush();
    this.#isComplete = true;
    this.#events.complete();
  }

  /** Brings the store up to date, and forgets what is long over. */
  flush(): void {
    this.#isDirty = false;
    trim(this.#transcript, KEPT.transcript, ({ final }) => final);
    trim(this.#subagents, KEPT.subagents, ({ endedAt }) => endedAt !== null);
    trim(this.#questions, KEPT.questions, isOver);
    trim(this.#deliveries, KEPT.deliveries, isGone);
    this.#store?.trigger.replaced({ state: this.#state });
  }

  get #state(): SessionState {
    return {
      connection: this.#connection,
      floor: this.#floor,
      agent: this.#agent,
      transcript: [...this.#transcript.values()].toSorted((a, b) => a.at - b.at),
      subagents: [...this.#subagents.values()],
      questions: [...this.#questions.values()],
      deliveries: [...this.#deliveries.values()],
    };
  }

  #schedule(): void {
    this.#changes += 1;
    if (!this.#store) {
      if (this.#changes % TRIM_EVERY === 0) this.flush();
      return;
    }
    if (this.#isDirty) return;
    this.#isDirty = true;
    const { scheduler } = this.#environment;
    // Behind the work that waits already: an answer is urgent, a screen is not.
    scheduler.yieldThen(() =>
      scheduler.yieldThen(() => {
        if (this.#isDirty) this.flush();
      }),
    );
  }
}

/** Nothing that a screen would show differently. */
function isSame<T extends object>(before: T | undefined, after: T): boolean {
  if (!before) return false;
  const keys = Object.keys(after) as (keyof T)[];
  return keys.every((key) => Object.is(before[key], after[key]));
}

const isOver = ({ state }: QuestionView): boolean =>
  state === 'answered' || state === 'expired' || state === 'withdrawn' || state === 'superseded';

const isGone = ({ state }: DeliveryView): boolean =>
  state === 'delivered' || state === 'dismissed' || state === 'dropped';

/** Forgets the oldest of what is over. What goes on is always kept. */
function trim<T>(views: Map<string, T>, kept: number, over: (view: T) => boolean): void {
  let excess = -kept;
  for (const view of views.values()) if (over(view)) excess += 1;
  for (const [id, view] of views) {
    if (excess <= 0) return;
    if (!over(view)) continue;
    views.delete(id);
    excess -= 1;
  }
}
