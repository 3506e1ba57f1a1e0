// The output of a text session as a series of parts. Observers receive each part immediately. Readers pull each part. A
// reader has seen a part when it pulls the next one.
//
// Owns:     the readers' buffers, the parts that each reader has seen, and the unseen cards.
// Does not: create text, or decide what happens to an unseen delivery (text-lead).
//
// Invariants
//   TEXT-OUTPUT-1. Every reader receives, in order, every part that is pushed after the reader started.
//   TEXT-OUTPUT-2. A part's `seen` is called at most once. It is called immediately if an observer or a waiter received
//       the part, and otherwise when a reader asks for the next part. A reader that stops at a part has not seen it,
//       because it may not have shown the part.
//   TEXT-OUTPUT-3. A reader's buffer is limited. If it is full, the oldest parts are dropped, and a `gap` part contains
//       their number.
//   TEXT-OUTPUT-4. A part's `unseen` is called at most once, and never after `seen`. It is called when no remaining
//       reader can see the part, or immediately if there is no listener.
//   TEXT-OUTPUT-5. A card goes to every listener that has not received the part that the card replaces, and to every
//       later listener. This ends when a listener has seen the card, or when the card is no longer due.
//   TEXT-OUTPUT-6. A reader that stops is removed immediately, even if it has not started to read or is waiting for a
//       part. In those cases, a plain generator would run `finally` late (when the next part arrives) or never.

import { Observable, Subject } from 'rxjs';
import type { QuestionView } from '../../contracts/session-views.ts';

/** A part of the lead agent's output. */
export type TextPart =
  /** Text as it streams. `itemId` identifies the message. */
  | { readonly type: 'text.delta'; readonly itemId: string; readonly text: string }
  /** The whole message. */
  | {
      readonly type: 'text.done';
      readonly itemId: string;
      readonly text: string;
      /** The delivery that the message contains, or null if the message is a reply. */
      readonly deliveryId: string | null;
      /** The results that the message reports, if there are several. Each is a separate delivery. */
      readonly deliveryIds?: readonly string[];
    }
  /**
   * A subagent's progress or result, in the subagent's own words. This part is not in the conversation. It is never the
   * final report, because the lead agent reports results in a separate message.
   */
  | {
      readonly type: 'subagent.reported';
      readonly kind: 'progress' | 'result';
      readonly subagentId: string;
      /** `subagent-<id>` */
      readonly agentName: string;
      readonly subagentName: string;
      readonly text: string;
      readonly final: false;
    }
  /** A result or notice, unchanged, because the lead agent could not rephrase it or its text was not acknowledged. */
  | {
      readonly type: 'delivery.card';
      readonly deliveryId: string;
      readonly label: string;
      readonly text: string;
    }
  /** A subagent's question. Answer it with `session.answer` or by sending text. */
  | {
      readonly type: 'question.asked';
      readonly requestId: string;
      readonly question: string;
      readonly options: QuestionView['options'];
      readonly subagentName: string;
    }
  /** The model failed, but the session continues. */
  | { readonly type: 'response.failed'; readonly code: string; readonly message: string }
  /** The number of parts that were dropped because this reader was too slow. */
  | { readonly type: 'gap'; readonly missed: number };

/** A part's callbacks. Exactly one of the two is called, and only once. */
export interface Fate {
  seen(): void;
  /** Called when no remaining listener can see the part. @defaultValue nothing is called */
  unseen?(): void;
}

interface Reader {
  readonly buffer: Piece[];
  /** The part that the reader has received but not pulled past. */
  current: Piece | null;
  missed: number;
  wake: (() => void) | null;
  done: boolean;
}

interface Piece {
  readonly part: TextPart;
  fate: Fate | null;
  /** The number of readers that have received the part but not pulled past it. */
  holders: number;
}

interface Card {
  readonly piece: Piece;
  /** Returns whether a listener must still see the card. */
  isDue(): boolean;
}

/** Returns whether an app is waiting for one of these deliveries. */
type Waiter = (deliveryIds: readonly string[]) => boolean;

/** The number of parts by which a reader may lag behind. */
const MAX_LAG = 10_000;

export class TextOutput {
  /** The unseen cards, and then all new parts. */
  readonly parts: Observable<TextPart>;
  readonly #subject = new Subject<TextPart>();
  readonly #readers = new Set<Reader>();
  #isAwaited: Waiter = () => false;
  readonly #cards = new Map<string, Card>();
  #isComplete = false;

  constructor() {
    this.parts = new Observable((observer) => {
      for (const piece of this.#unseenCards()) {
        // The observer has unsubscribed, so the other cards stay unseen.
        if (observer.closed) return undefined;
        observer.next(piece.part);
        see(piece);
      }
      return this.#subject.subscribe(observer);
    });
  }

  /** Whether a listener would receive a part now. */
  get isHeard(): boolean {
    return this.#subject.observed || this.#readers.size > 0;
  }

  push(part: TextPart, fate: Fate | null = null): void {
    this.#give({ part, fate, holders: 0 }, [...this.#readers]);
  }

  /**
   * Adds a card for a delivery that was reported without being seen. The card stays until a listener has seen it, or
   * `isDue` returns false. The part contains the delivery's id.
   */
  card(deliveryId: string, part: TextPart, isDue: () => boolean, seen: () => void): void {
    for (const [id, card] of this.#cards) if (!card.isDue()) this.#cards.delete(id);
    if (this.#cards.has(deliveryId)) return;
    const fate: Fate = {
      seen: () => {
        this.#cards.delete(deliveryId);
        seen();
      },
    };
    const piece: Piece = { part, fate, holders: 0 };
    this.#cards.set(deliveryId, { piece, isDue });
    this.#give(
      piece,
      [...this.#readers].filter((reader) => !has(reader, deliveryId)),
    );
  }

  /** Sets the waiter. A delivery that the waiter is waiting for counts as seen when it is reported. */
  awaitedBy(waiter: Waiter): void {
    this.#isAwaited = waiter;
  }

  /** Reads all new parts, until `end` or `complete`. The reader is registered before this call returns. */
  read(): { parts: AsyncGenerator<TextPart, void, undefined>; end: () => void } {
    const reader: Reader = {
      buffer: [],
      current: null,
      missed: 0,
      wake: null,
      done: this.#isComplete,
    };
    for (const piece of this.#unseenCards()) hand(piece, reader);
    this.#readers.add(reader);
    const parts = this.#pull(reader);
    const leave = parts.return.bind(parts);
    return {
      // TEXT-OUTPUT-6
      parts: Object.assign(parts, {
        return: (): ReturnType<typeof leave> => {
          finish(reader);
          this.#left(reader);
          return leave();
        },
      }),
      end: () => finish(reader),
    };
  }

  /** Completes the output. Readers stop after their last part, and later readers receive nothing. */
  complete(): void {
    this.#isComplete = true;
    this.#cards.clear();
    this.#subject.complete();
    for (const reader of this.#readers) finish(reader);
  }

  #give(piece: Piece, readers: readonly Reader[]): void {
    for (const reader of readers) hand(piece, reader);
    const isObserved = this.#subject.observed;
    this.#subject.next(piece.part);
    const ids = deliveriesIn(piece.part);
    if (isObserved || this.#isAwaited(ids)) see(piece);
    else drop(piece, 0);
  }

  /** Returns the cards that are still unseen (TEXT-OUTPUT-5). */
  #unseenCards(): readonly Piece[] {
    return this.#isComplete
      ? []
      : [...this.#cards.values()].flatMap(({ piece, isDue }) => (isDue() ? [piece] : []));
  }

  async *#pull(reader: Reader): AsyncGenerator<TextPart, void, undefined> {
    try {
      for (;;) {
        if (reader.missed > 0) {
          const { missed } = reader;
          reader.missed = 0;
          yield { type: 'gap', missed };
        }
        const piece = reader.buffer.shift();
        if (piece) {
          reader.current = piece;
          yield piece.part;
          reader.current = null;
          piece.holders -= 1;
          see(piece);
        } else if (reader.done) return;
        else
          await new Promise<void>((resolve) => {
            reader.wake = resolve;
          });
      }
    } finally {
      this.#left(reader);
    }
  }

  #left(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    const held = heldBy(reader);
    reader.buffer.length = 0;
    for (const piece of held) drop(piece, 1);
  }
}

function hand(piece: Piece, reader: Reader): void {
  if (reader.buffer.length >= MAX_LAG) {
    const lost = reader.buffer.shift();
    if (lost) drop(lost, 1);
    reader.missed += 1;
  }
  piece.holders += 1;
  reader.buffer.push(piece);
  reader.wake?.();
}

function see(piece: Piece): void {
  const { fate } = piece;
  piece.fate = null;
  fate?.seen();
}

/** Records that this number of readers dropped the part without having seen it. */
function drop(piece: Piece, readers: number): void {
  piece.holders -= readers;
  if (piece.holders > 0 || !piece.fate?.unseen) return;
  const { fate } = piece;
  piece.fate = null;
  fate.unseen?.();
}

/** Stops a reader after its last part. */
function finish(reader: Reader): void {
  reader.done = true;
  reader.wake?.();
}

/** Returns the parts that a reader has received but not pulled past. */
function heldBy({ current, buffer }: Reader): readonly Piece[] {
  return [...(current ? [current] : []), ...buffer];
}

function has(reader: Reader, deliveryId: string): boolean {
  return heldBy(reader).some(({ part }) => deliveriesIn(part).includes(deliveryId));
}

/** Returns the ids of the deliveries that a part contains. */
function deliveriesIn(part: TextPart): readonly string[] {
  if (part.type === 'question.asked') return [part.requestId];
  if (part.type === 'delivery.card') return [part.deliveryId];
  if (part.type !== 'text.done' || part.deliveryId === null) return [];
  return [part.deliveryId, ...(part.deliveryIds ?? [])];
}
