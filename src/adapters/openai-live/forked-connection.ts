// A connection that resumes a stored session if the server permits it, and otherwise begins anew: an
// incomplete or missing recording is no reason to lose the user.
//
//   forking ──ready──▶ settled
//      └── refused, too late ──▶ fresh (settled, whatever becomes of it)
//
// Owns: what is sent before it is settled. Does not: what either connection does.
//
// FORKED-CONNECTION-1. The second attempt is made once, and gets all messages that were sent before it.
// FORKED-CONNECTION-2. Events of the first attempt are dropped after it was given up.

import { Subject, type Observable } from 'rxjs';
import { createBoundedBuffer } from '../../voice/audio/bounded-buffer.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type {
  TransportCommand,
  TransportConnection,
  TransportEvent,
} from '../../voice/connection/transport.ts';
import { createHeldStream } from '../socket/held-stream.ts';
import type { ConnectionDiagnostics } from '../socket/socket-connection.ts';

type Attempt = TransportConnection & { readonly diagnostics: ConnectionDiagnostics };

export interface ForkedConnectionOptions {
  readonly fork: () => Attempt;
  readonly fresh: () => Attempt;
  readonly maxBufferedAudioMs: number;
}

export class ForkedConnection implements TransportConnection {
  readonly events: Observable<TransportEvent>;
  readonly audio: Observable<AudioFrame>;
  readonly #events = createHeldStream<TransportEvent>();
  readonly #audio = new Subject<AudioFrame>();
  readonly #options: ForkedConnectionOptions;
  readonly #commands: TransportCommand[] = [];
  readonly #frames;
  #attempt: Attempt;
  #isSettled = false;

  constructor(options: ForkedConnectionOptions) {
    this.#options = options;
    this.events = this.#events.stream;
    this.audio = this.#audio.asObservable();
    this.#frames = createBoundedBuffer({ maxMs: options.maxBufferedAudioMs, keep: 'newest' });
    this.#attempt = options.fork();
    this.#listen(this.#attempt);
  }

  sendAudio(frame: AudioFrame): void {
    if (!this.#isSettled) this.#frames.push(frame);
    else this.#attempt.sendAudio(frame);
  }

  send(command: TransportCommand): void {
    if (!this.#isSettled) this.#commands.push(command);
    else this.#attempt.send(command);
  }

  close(): Promise<void> {
    this.#isSettled = true;
    return this.#attempt.close();
  }

  get diagnostics(): ConnectionDiagnostics {
    return this.#attempt.diagnostics;
  }

  #listen(attempt: Attempt): void {
    const isOurs = (): boolean => this.#attempt === attempt;
    attempt.audio.subscribe((frame) => {
      if (isOurs()) this.#audio.next(frame);
    });
    attempt.events.subscribe({
      next: (event) => {
        if (isOurs()) this.#hear(event);
      },
      complete: () => {
        if (!isOurs()) return;
        this.#events.complete();
        this.#audio.complete();
      },
    });
  }

  #hear(event: TransportEvent): void {
    // FORKED-CONNECTION-2: the reason of its end contains any earlier reports.
    if (this.#isSettled) {
      this.#events.next(event);
    } else if (event.type === 'transport.ready') {
      this.#events.next(event);
      this.#settle();
    } else if (event.type === 'transport.closed') {
      this.#events.next({
        type: 'transport.error',
        code: 'RESUME_REFUSED',
        message: `The stored session could not be gone on from, so a new one begins: ${event.reason}`,
        responseKey: null,
        raw: null,
      });
      this.#attempt = this.#options.fresh();
      this.#listen(this.#attempt);
      this.#settle();
    }
  }

  /** Sends everything to this attempt, which waits for its own readiness. */
  #settle(): void {
    this.#isSettled = true;
    for (const command of this.#commands.splice(0)) this.#attempt.send(command);
    for (const frame of this.#frames.drain()) this.#attempt.sendAudio(frame);
  }
}
