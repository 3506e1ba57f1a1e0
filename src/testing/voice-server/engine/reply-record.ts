// One turn of the model, as a test sees it during and after its generation.

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

  /** A turn can end only once; later calls have no effect. */
  end(status: Exclude<FakeReply['status'], 'in_progress'>): void {
    if (this.status !== 'in_progress') return;
    this.status = status;
    this.#resolve();
  }
}
