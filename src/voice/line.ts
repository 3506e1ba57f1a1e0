// The line to the voice model: dialled, in use, changed for another agent, closed.
//
// Owns:     the connection in use, the one that is being prepared for another agent, and
//           the user's sound while nobody can take it.
// Does not: decide when to dial again (session machine), or what is said.
//
// Invariants
//   L1. Only the connection in use is listened to; nothing that an adapter does brings the
//       process down.
//   L2. While another agent is being prepared the user's sound is kept (the newest
//       `keptAudioMs`) and then given, in order, to whoever leads.
//   L3. Make before break: where it takes a new connection the one in use stays until the
//       other is ready, so that a transfer that fails has changed nothing.
//   L4. After a transfer that failed the model is told again who it was, if it may have
//       taken itself for the other.

import { callSafely, type Host } from '../actors/runtime/host.ts';
import { messageOf } from '../errors.ts';
import type { Failure } from '../machines/index.ts';
import type { AudioFrame } from './audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer } from './audio/bounded-buffer.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportEvent,
} from './transport.ts';

export type LineClosed = Extract<TransportEvent, { type: 'transport.closed' }>;

export interface LinePorts {
  /** A connection is ready, and has been told nothing yet. */
  ready(): void;
  /** The connection in use is gone. */
  lost(event: LineClosed): void;
  happened(event: TransportEvent): void;
  spoke(frame: AudioFrame): void;
  /** Another connection has taken the place of the one in use, and has been told nothing yet. */
  replaced(): void;
  /** The other agent is ready, or why it will not be. Once for each `transfer`. */
  transferred(error: Failure | null): void;
}

interface Handover {
  /** On a new connection; null: the one in use is configured anew. */
  readonly candidate: TransportConnection | null;
  /** The number of the configuration that must be answered. */
  readonly configure: number;
  /** The other agent is ready. */
  isReady: boolean;
  /** What became of a candidate that did not last. */
  lost: LineClosed | null;
}

export class Line {
  readonly #transport: Transport;
  readonly #host: Host;
  readonly #ports: LinePorts;
  readonly #kept: BoundedBuffer;
  #connection: TransportConnection | null = null;
  #handover: Handover | null = null;
  #configures = 0;
  #answered = 0;

  constructor(transport: Transport, host: Host, ports: LinePorts, keptAudioMs: number) {
    this.#transport = transport;
    this.#host = host;
    this.#ports = ports;
    this.#kept = createBoundedBuffer({ maxMs: keptAudioMs, keep: 'newest' });
  }

  /** There is somebody to talk to. */
  get isUp(): boolean {
    return this.#connection !== null;
  }

  /** Another agent is being prepared: nobody shall speak. */
  get isHandingOver(): boolean {
    return this.#handover !== null;
  }

  dial(configuration: TransportConfiguration): void {
    const connection = this.#connect(configuration);
    this.#connection = connection;
    this.#configures = 0;
    this.#answered = 0;
    this.#listen(connection, (event) => this.#said(event));
  }

  /** Closes what there is; it may be dialled again. */
  hangUp(): void {
    this.#giveUpHandover();
    const connection = this.#connection;
    this.#connection = null;
    void connection?.close();
  }

  send(command: TransportCommand): void {
    this.#connection?.send(command);
  }

  /** Returns whether the sound was sent, or else kept for whoever leads then (L2). */
  sendAudio(frame: AudioFrame): boolean {
    if (this.#handover) {
      this.#kept.push(frame);
      return false;
    }
    this.#connection?.sendAudio(frame);
    return true;
  }

  /** Instructions or tools have changed. False: the wire cannot do that. */
  configure(configuration: TransportConfiguration): boolean {
    if (!this.#transport.capabilities.updatesSession) return false;
    this.#configure(configuration);
    return true;
  }

  /** Prepares the model for another agent. */
  transfer(configuration: TransportConfiguration): void {
    if (this.#transport.capabilities.updatesSession) {
      const configure = this.#configures + 1;
      this.#handover = { candidate: null, configure, isReady: false, lost: null };
      this.#configure(configuration);
      return;
    }
    const candidate = this.#connect(configuration);
    this.#handover = { candidate, configure: 0, isReady: false, lost: null };
    this.#listen(candidate, (event) => this.#candidateSaid(candidate, event));
  }

  /**
   * The transfer is over, as the session sees it; on an error the model shall be again who
   * `before` says. Returns the user's sound that was kept.
   */
  endTransfer(error: Failure | null, before: () => TransportConfiguration): readonly AudioFrame[] {
    const handover = this.#handover;
    this.#handover = null;
    if (handover?.candidate) this.#choose(handover.candidate, handover, error);
    else if (handover && error && this.#connection) {
      // L4. A refusal has changed nothing; an answer that is missing, or came too late, may have.
      const isRefused = this.#answered >= handover.configure && !handover.isReady;
      if (!isRefused) this.#configure(before());
    }
    return this.#kept.drain();
  }

  /** The candidate takes over, or is hung up (L3). */
  #choose(candidate: TransportConnection, { lost }: Handover, error: Failure | null): void {
    if (error) {
      void candidate.close();
      return;
    }
    void this.#connection?.close();
    this.#connection = lost ? null : candidate;
    if (lost) this.#ports.lost(lost);
    else this.#ports.replaced();
  }

  #giveUpHandover(): void {
    void this.#handover?.candidate?.close();
    this.#handover = null;
  }

  #connect(configuration: TransportConfiguration): TransportConnection {
    return this.#transport.connect(configuration, { environment: this.#host.environment });
  }

  #configure(configuration: TransportConfiguration): void {
    this.#configures += 1;
    this.#connection?.send({ type: 'session.configure', configuration });
  }

  #listen(connection: TransportConnection, hear: (event: TransportEvent) => void): void {
    const isOurs = (): boolean =>
      this.#connection === connection || this.#handover?.candidate === connection;
    // Whatever an adapter sends, it must not bring the process down: an observer that throws would.
    const guarded = <T>(take: (value: T) => void): ((value: T) => void) => {
      return (value) => {
        if (isOurs()) callSafely(this.#host, 'transport', () => take(value));
      };
    };
    connection.audio.subscribe(
      guarded((frame: AudioFrame) => {
        if (this.#connection === connection) this.#ports.spoke(frame);
      }),
    );
    connection.events.subscribe({
      next: guarded(hear),
      error: guarded((error: unknown) =>
        hear({ type: 'transport.closed', code: null, reason: messageOf(error), retryable: true }),
      ),
    });
  }

  #said(event: TransportEvent): void {
    const { type } = event;
    if (type === 'transport.ready') this.#ports.ready();
    else if (type === 'session.configured') this.#configured(null);
    else if (type === 'session.refused') {
      const { code, message } = event;
      this.#configured({ code, message, retryable: false });
    } else if (type === 'transport.closed') {
      this.#giveUpHandover();
      this.#connection = null;
      this.#ports.lost(event);
    } else this.#ports.happened(event);
  }

  #configured(error: Failure | null): void {
    this.#answered += 1;
    const handover = this.#handover;
    if (handover && !handover.isReady && handover.configure === this.#answered) {
      handover.isReady = error === null;
      this.#ports.transferred(error);
    } else if (error) this.#ports.happened(refusal(error));
  }

  #candidateSaid(candidate: TransportConnection, event: TransportEvent): void {
    const handover = this.#handover;
    if (this.#connection === candidate) this.#said(event);
    else if (!handover || handover.lost) return;
    else if (event.type === 'transport.ready') {
      handover.isReady = true;
      this.#ports.transferred(null);
    } else if (event.type === 'transport.closed') {
      handover.lost = event;
      if (handover.isReady) return;
      const message = `The connection to ${this.#transport.name} for the other agent failed: ${event.reason}`;
      const { retryable } = event;
      this.#ports.transferred({ code: 'TRANSPORT_LOST', message, retryable });
    }
  }
}

function refusal({ code, message }: Failure): TransportEvent {
  return { type: 'transport.error', code, message, responseKey: null, raw: null };
}
