// The demo's view of a session: the part of `VoiceSession` that its server and
// its tools use. Tests drive the server through a fake of it.

import type { Observable, Observer } from 'rxjs';
import type { DeliveryPriority } from '../../src/machines/index.ts';
import type {
  AnswerReceipt,
  SessionEvent,
  SessionState,
  SubagentView,
} from '../../src/actors/contracts/session-views.ts';
import type { AudioFrame } from '../../src/voice/audio/audio-frame.ts';

/** The answer of a person: a button, words, or yes or no to an approval. */
export type GivenAnswer =
  | { readonly optionId: string }
  | { readonly text: string }
  | { readonly approved: boolean };

/** How much of an item was played, as the client measured it. */
export interface PlayoutReport {
  readonly itemId: string;
  readonly playedMs: number;
}

export interface SessionFace {
  start(): Promise<void>;
  close(): Promise<void>;
  /** A client is there; the function says that it left. */
  attach(): () => void;
  readonly audioIn: Pick<Observer<AudioFrame>, 'next'>;
  readonly audioOut: Observable<AudioFrame>;
  readonly playout: Pick<Observer<PlayoutReport>, 'next'>;
  readonly events: Observable<SessionEvent>;
  readonly store: { getSnapshot(): { readonly context: SessionState } };
  sendText(text: string): void | Promise<void>;
  answer(requestId: string, answer: GivenAnswer): AnswerReceipt | Promise<AnswerReceipt>;
  shown(deliveryId: string): void;
  questionShown(requestId: string): void;
  dismiss(deliveryId: string): void;
  notifyBackground(
    text: string,
    options?: { readonly priority?: DeliveryPriority; readonly label?: string },
  ): unknown;
  readonly subagents: {
    list(): readonly SubagentView[];
    cancel(id: string, reason: string): unknown;
  };
}
