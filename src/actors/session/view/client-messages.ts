// The messages to a client, as JSON: for apps whose clients speak this vocabulary instead of following
// `session.events`. Derived from these events alone.
//
// Invariants
//   CLIENT-MESSAGES-1. Each subscriber gets each question and each end once, and a progress when it has
//       changed. (A late subscriber gets the events from then on; the present state is in `session.store`.)
//   CLIENT-MESSAGES-2. A delivery that a client may acknowledge comes with its `deliveryId`: with the words
//       that tell it, or as a card; as a card also for a later subscriber, until a client has acknowledged
//       it.

import { concat, concatMap, defer, type Observable } from 'rxjs';
import type {
  DeliveryView,
  QuestionOption,
  QuestionView,
  SessionEvent,
  SubagentView,
  TranscriptItem,
} from '../../contracts/session-views.ts';
import type { Artifact } from '../../contracts/outcome.ts';

/** The content that a screen shows beside the words; `ui.response` answers it. */
export type UiPayload =
  | {
      readonly type: 'choice';
      readonly requestId: string;
      readonly data: { readonly options: readonly QuestionOption[] };
    }
  | {
      readonly type: 'confirmation';
      readonly requestId: string;
      readonly data: { readonly text: string; readonly options: readonly QuestionOption[] };
    };

export type ClientMessage =
  | {
      readonly type: 'transcript';
      readonly itemId: string;
      readonly role: 'user' | 'assistant';
      readonly text: string;
      readonly partial: boolean;
      /** True if it was final before, with other words. */
      readonly corrected: boolean;
      /** True if the user interrupted it: `text` was heard. */
      readonly interrupted: boolean;
      /** True if it was said only to fill a silence. */
      readonly filler?: boolean;
      /** The delivery that it tells: answer with `delivery.shown` once it is on the screen. */
      readonly deliveryId?: string;
      /** The results that it tells together. */
      readonly deliveryIds?: readonly string[];
    }
  /**
   * A result or notice that waits to be seen, and was not told to this client in words: answer with
   * `delivery.shown`, or `delivery.dismissed`.
   */
  | {
      readonly type: 'delivery.card';
      readonly deliveryId: string;
      readonly subagentId: string | null;
      readonly label: string;
      readonly text: string;
    }
  | { readonly type: 'turn.ended'; readonly turn: number; readonly agentName: string }
  | { readonly type: 'agent.changed'; readonly agentName: string; readonly from: string | null }
  /**
   * A question of a subagent that has the user's words; other questions wait and are sent when it is their
   * turn.
   */
  | {
      readonly type: 'subagent.question';
      readonly requestId: string;
      readonly subagentId: string;
      readonly subagentName: string;
      readonly toolCallId: string | null;
      readonly text: string;
    }
  /** A question that is over: its buttons have no effect any more. */
  | {
      readonly type: 'subagent.question.closed';
      readonly requestId: string;
      readonly state: 'answered' | 'expired' | 'withdrawn' | 'superseded';
      readonly answer: string | null;
    }
  | { readonly type: 'ui.payload'; readonly payload: UiPayload }
  | {
      readonly type: 'subagent.progress';
      readonly subagentId: string;
      readonly subagentName: string;
      readonly toolCallId: string | null;
      readonly text: string;
    }
  | ({ readonly type: 'subagent.completion' } & SubagentCompletion)
  /** The data that `sendJsonToClient` was given. */
  | { readonly type: 'json'; readonly data: unknown };

/** The end of a subagent. */
export interface SubagentCompletion {
  readonly subagentId: string;
  readonly toolCallId: string | null;
  readonly status: 'success' | 'failure' | 'cancelled';
  /** The result in words that can be said, or the reason why there is none. */
  readonly summaryText: string;
  readonly artifacts: readonly Artifact[];
  readonly metadata: {
    readonly configName: string;
    readonly durationMs: number;
    readonly stepCount: number;
    readonly lifetime: 'ephemeral' | 'session';
  };
}

/** Number of ids that are remembered, so that nothing is sent twice. */
const REMEMBERED = 1000;

/**
 * The messages for one client. Cold: each subscriber remembers its own messages. `deliveries`: reads the
 * deliveries at the subscription.
 */
export function clientMessages(
  events: Observable<SessionEvent>,
  deliveries: () => readonly DeliveryView[],
): Observable<ClientMessage> {
  return defer(() => {
    const told = new Told();
    const waiting = deliveries().flatMap((delivery) => told.cardOf(delivery));
    return concat(waiting, events.pipe(concatMap((event) => told.messagesOf(event))));
  });
}

class Told {
  readonly #finals = new Bounded<string>();
  readonly #questions = new Bounded<string>();
  readonly #progress = new Bounded<string>();
  readonly #ended = new Bounded<boolean>();
  readonly #calls = new Bounded<string | null>();
  /** Deliveries that this client has, in words or as a card. */
  readonly #deliveries = new Bounded<boolean>();
  readonly #lifetimes = new Bounded<'ephemeral' | 'session'>();

  messagesOf(event: SessionEvent): readonly ClientMessage[] {
    const { type } = event;
    if (type === 'transcript.changed') return [this.#transcript(event.item)];
    if (type === 'turn.ended') return [event];
    if (type === 'question.changed') return this.#question(event.question);
    if (type === 'subagent.changed') return this.#subagent(event.subagent);
    if (type === 'delivery.changed') return this.cardOf(event.delivery);
    if (type === 'client.json') return [{ type: 'json', data: event.data }];
    if (type === 'subagent.delegated') this.#lifetimes.set(event.subagentId, event.lifetime);
    // An agent that stays is no change.
    if (type === 'agent.entered' && event.from !== event.agentName)
      return [{ type: 'agent.changed', agentName: event.agentName, from: event.from }];
    return [];
  }

  /** CLIENT-MESSAGES-2 */
  cardOf({ deliveryId, subagentId, label, text, ...view }: DeliveryView): readonly ClientMessage[] {
    const isCard = view.card && view.state === 'pending' && view.kind !== 'question';
    if (!isCard || this.#deliveries.get(deliveryId)) return [];
    this.#deliveries.set(deliveryId, true);
    return [{ type: 'delivery.card', deliveryId, subagentId, label, text }];
  }

  #transcript(item: TranscriptItem): ClientMessage {
    const { id: itemId, role, text, final, interrupted = false, filler } = item;
    const { deliveryId, deliveryIds } = item;
    for (const id of deliveryIds ?? (deliveryId === undefined ? [] : [deliveryId]))
      this.#deliveries.set(id, true);
    const before = this.#finals.get(itemId);
    if (final) this.#finals.set(itemId, text);
    const corrected = before !== undefined && before !== text && !interrupted;
    const message = { itemId, role, text, partial: !final, corrected, interrupted };
    return {
      type: 'transcript',
      ...message,
      ...(filler && { filler }),
      ...(deliveryId !== undefined && { deliveryId }),
      ...(deliveryIds && { deliveryIds }),
    };
  }

  #question(question: QuestionView): readonly ClientMessage[] {
    const { requestId, subagentId, subagentName, state, answer, kind, options } = question;
    const before = this.#questions.get(requestId);
    if (before === state) return [];
    if (state === 'queued' || state === 'parked') return [];
    if (state !== 'presenting' && state !== 'open') {
      this.#questions.set(requestId, state);
      // A question that was never sent has no end to send.
      if (before === undefined) return [];
      return [{ type: 'subagent.question.closed', requestId, state, answer }];
    }
    if (before !== undefined) return [];
    this.#questions.set(requestId, 'open');
    const toolCallId = this.#calls.get(subagentId) ?? null;
    const text = question.question;
    const payload = payloadOf(requestId, kind, text, options);
    return [
      { type: 'subagent.question', requestId, subagentId, subagentName, toolCallId, text },
      ...(payload ? [{ type: 'ui.payload' as const, payload }] : []),
    ];
  }

  #subagent(view: SubagentView): readonly ClientMessage[] {
    const { id: subagentId, name: subagentName, callId: toolCallId, progress, outcome } = view;
    if (this.#ended.get(subagentId)) return [];
    this.#calls.set(subagentId, toolCallId);
    const messages: ClientMessage[] = [];
    if (progress !== null && progress !== this.#progress.get(subagentId)) {
      this.#progress.set(subagentId, progress);
      const text = progress;
      messages.push({ type: 'subagent.progress', subagentId, subagentName, toolCallId, text });
    }
    if (view.endedAt === null || !outcome) return messages;
    this.#ended.set(subagentId, true);
    const { status, summary, text, error, steps: stepCount, artifacts = [] } = outcome;
    messages.push({
      type: 'subagent.completion',
      subagentId,
      toolCallId,
      status: status === 'completed' ? 'success' : status === 'cancelled' ? status : 'failure',
      summaryText: status === 'completed' ? (summary ?? text) : (error?.message ?? status),
      artifacts,
      metadata: {
        configName: subagentName,
        durationMs: view.endedAt - view.startedAt,
        stepCount,
        lifetime: this.#lifetimes.get(subagentId) ?? 'ephemeral',
      },
    });
    return messages;
  }
}

function payloadOf(
  requestId: string,
  kind: QuestionView['kind'],
  text: string,
  options: readonly QuestionOption[],
): UiPayload | null {
  if (kind === 'approval') return { type: 'confirmation', requestId, data: { text, options } };
  return options.length > 0 ? { type: 'choice', requestId, data: { options } } : null;
}

/** A map that forgets its oldest entries. */
class Bounded<T> {
  readonly #entries = new Map<string, T>();

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > REMEMBERED && oldest !== undefined) this.#entries.delete(oldest);
  }
}
