// What a text session says, piece by piece, to whoever listens: observers get it at
// once, readers pull it. Somebody who pulls past a piece has seen it.
//
// Owns:     the buffers of the readers, and who has seen what.
// Does not: make text.
//
// Invariants
//   X1. Every reader gets every piece since it began to read, in order.
//   X2. `seen` of a piece is called at most once: when a reader asks for more after it,
//       or at once where there are only observers. Where nobody listens it is not called.
//   X3. A reader's buffer is bounded: the oldest pieces go, and a `gap` says how many.

import { Subject, type Observable } from 'rxjs';
import type { QuestionView } from '../session-views.ts';

/** A piece of what the lead agent says. */
export type TextPart =
  /** Words as they come. `itemId` names the message. */
  | { readonly type: 'text.delta'; readonly itemId: string; readonly text: string }
  /** The whole message. */
  | {
      readonly type: 'text.done';
      readonly itemId: string;
      readonly text: string;
      /** The delivery that it reports, if it was not asked for. */
      readonly deliveryId: string | null;
      /** The results that it reports, where there are several; each has a delivery of its own. */
      readonly deliveryIds?: readonly string[];
    }
  /**
   * A subagent says how far it is, or what it has, in its own words. Not in the conversation,
   * and never the last word: the lead agent tells results in a message of its own.
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
  /** A result or notice that the lead agent could not put into words, time and again: here it is as it is. */
  | {
      readonly type: 'delivery.card';
      readonly deliveryId: string;
      readonly label: string;
      readonly text: string;
    }
  /** A subagent asks; answer with `session.answer` or by sending text. */
  | {
      readonly type: 'question.asked';
      readonly requestId: string;
      readonly question: string;
      readonly options: QuestionView['options'];
      readonly subagentName: string;
    }
  /** The model failed; the session goes on. */
  | { readonly type: 'response.failed'; readonly code: string; readonly message: string }
  /** Pieces that this reader was too slow for. */
  | { readonly type: 'gap'; readonly missed: number };

interface Reader {
  readonly buffer: Piece[];
  missed: number;
  wake: (() => void) | null;
  done: boolean;
}

interface Piece {
  readonly part: TextPart;
  seen: (() => void) | null;
}

/** Pieces that a reader may lag behind. */
const MAX_LAG = 10_000;

export class TextOutput {
  readonly #subject = new Subject<TextPart>();
  readonly #readers = new Set<Reader>();
  #isComplete = false;

  get parts(): Observable<TextPart> {
    return this.#subject.asObservable();
  }

  push(part: TextPart, seen: (() => void) | null = null): void {
    const piece: Piece = { part, seen };
    for (const reader of this.#readers) {
      if (reader.buffer.length >= MAX_LAG) {
        reader.buffer.shift();
        reader.missed += 1;
      }
      reader.buffer.push(piece);
      reader.wake?.();
    }
    const isObserved = this.#subject.observed;
    this.#subject.next(part);
    if (isObserved && this.#readers.size === 0) see(piece);
  }

  /** Reads from now on, until `end` or `complete`. The reader is there before this returns. */
  read(): { parts: AsyncGenerator<TextPart, void, undefined>; end: () => void } {
    const reader: Reader = { buffer: [], missed: 0, wake: null, done: this.#isComplete };
    this.#readers.add(reader);
    const end = (): void => {
      reader.done = true;
      reader.wake?.();
    };
    return { parts: this.#pull(reader), end };
  }

  /** Nothing more is said: whoever reads comes to an end, who begins to read finds nothing. */
  complete(): void {
    this.#isComplete = true;
    this.#subject.complete();
    for (const reader of this.#readers) {
      reader.done = true;
      reader.wake?.();
    }
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
          yield piece.part;
          see(piece);
        } else if (reader.done) return;
        else
          await new Promise<void>((resolve) => {
            reader.wake = resolve;
          });
      }
    } finally {
      this.#readers.delete(reader);
    }
  }
}

function see(piece: Piece): void {
  const { seen } = piece;
  piece.seen = null;
  seen?.();
}
