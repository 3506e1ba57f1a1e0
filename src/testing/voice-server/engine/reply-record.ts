// One turn of the model from a test's point of view, during and after its generation.

import type { FakeReply, VoiceCause } from './control.ts';

export class ReplyRecord implements FakeReply {
  readonly id: string;
  readonly cause: VoiceCause;
  readonly ended: Promise<void>;
  status: FakeReply['status'] = 'in_progress';
  text = '';
  audioMs = 0;
  #resolve: () => void = () => {};

  constructor(id: string, cause: VoiceCause) {
    this.id = id;
    this.cause = cause;
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Only the first end of a turn counts. */
  end(status: Exclude<FakeReply['status'], 'in_progress'>): void {
    if (this.status !== 'in_progress') return;
    this.status = status;
    this.#resolve();
  }
}
