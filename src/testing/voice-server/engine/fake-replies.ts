// One model's turns as a test sees them, during and after their generation.

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

  /** Only the first ending counts. */
  end(status: Exclude<FakeReply['status'], 'in_progress'>): void {
    if (this.status !== 'in_progress') return;
    this.status = status;
    this.#resolve();
  }
}

export class FakeReplies {
  readonly all: ReplyRecord[] = [];

  begin(id: string, cause: VoiceCause): ReplyRecord {
    const reply = new ReplyRecord(id, cause);
    this.all.push(reply);
    return reply;
  }

  /** The latest turn that has not ended. */
  get current(): ReplyRecord | null {
    return this.all.findLast(({ status }) => status === 'in_progress') ?? null;
  }
}
