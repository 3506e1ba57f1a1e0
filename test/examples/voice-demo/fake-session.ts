// A session that only records what the server makes it do, and says what a test tells it to.

import { Subject } from 'rxjs';
import type { AnswerReceipt, SessionEvent } from '../../../src/actors/contracts/session-views.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import type { SessionFace } from '../../../examples/voice-demo/session-face.ts';
import { emptyState } from '../../support/session-state.ts';

export class FakeSession implements SessionFace {
  /** Every call, as `[method, ...arguments]`. */
  readonly calls: unknown[][] = [];
  readonly heard: AudioFrame[] = [];
  readonly audioOut = new Subject<AudioFrame>();
  readonly events = new Subject<SessionEvent>();
  state = emptyState;
  receipt: AnswerReceipt = { accepted: true };
  failure: Error | null = null;
  #starting: Promise<void> = Promise.resolve();
  #watchers: { readonly done: () => boolean; readonly resolve: () => void }[] = [];

  readonly audioIn = {
    next: (frame: AudioFrame) => {
      this.heard.push(frame);
      this.#look();
    },
  };
  readonly playout = { next: (report: unknown) => this.#note('playout', report) };
  readonly store = { getSnapshot: () => ({ context: this.state }) };
  readonly subagents = {
    list: () => this.state.subagents,
    cancel: (id: string, reason: string) => this.#note('cancel', id, reason),
  };

  async start(): Promise<void> {
    this.#note('start');
    await this.#starting;
    if (this.failure) throw this.failure;
  }

  /** `start` does not resolve before the returned function is called. */
  holdStart(): () => void {
    let release = (): void => undefined;
    this.#starting = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  async close(): Promise<void> {
    this.#note('close');
  }

  attach(): () => void {
    this.#note('attach');
    return () => this.#note('detach');
  }

  sendText(text: string): void {
    if (this.failure) throw this.failure;
    this.#note('sendText', text);
  }

  answer(requestId: string, answer: unknown): Promise<AnswerReceipt> {
    this.#note('answer', requestId, answer);
    return Promise.resolve(this.receipt);
  }

  shown(deliveryId: string): void {
    this.#note('shown', deliveryId);
  }

  questionShown(requestId: string): void {
    this.#note('questionShown', requestId);
  }

  dismiss(deliveryId: string): void {
    this.#note('dismiss', deliveryId);
  }

  notifyBackground(text: string, options?: unknown): string {
    this.#note('notifyBackground', text, options);
    return 'delivery_1';
  }

  /** The names of the methods that were called. */
  get names(): string[] {
    return this.calls.map(([name]) => String(name));
  }

  /** Resolves once it is true; checked after each call. */
  until(done: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.push({ done, resolve });
      this.#look();
    });
  }

  #note(...call: unknown[]): void {
    this.calls.push(call);
    this.#look();
  }

  #look(): void {
    const ready = this.#watchers.filter(({ done }) => done());
    this.#watchers = this.#watchers.filter((watcher) => !ready.includes(watcher));
    for (const { resolve } of ready) resolve();
  }
}
