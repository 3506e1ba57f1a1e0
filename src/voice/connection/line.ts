// The line to the voice model: dialled, in use, exchanged for another one, closed. A
// connection is exchanged for another agent (where the wire cannot change the session), and
// for a fresh one before it ends (rotation): in the same way.
//
// Owns:     the connection in use, the one that is being prepared to take its place, and
//           the user's sound while nobody can take it.
// Does not: decide when to dial again (session machine) or to rotate (rotation machine), what
//           a new connection begins with (continuation), or what is said.
//
// Invariants
//   CONNECTION-LINE-1. Only the connection in use is listened to; what it and others have used is counted
//       whenever they say so. Nothing that an adapter does brings the process down.
//   CONNECTION-LINE-2. While nobody can take the user's sound (another agent is being prepared, the line is
//       lost or not ready) it is kept, the newest `keptAudioMs`, and then given, in order.
//   CONNECTION-LINE-3. Make before break: the one in use stays until the other is ready, so that an exchange
//       that fails has changed nothing. It is closed when the other takes over: no two hear the
//       user. Where the other goes on from where the one in use ends, that is closed first.
//   CONNECTION-LINE-4. After a transfer that failed the model is told again who it was, if it may have
//       taken itself for the other.
//   CONNECTION-LINE-5. Nothing is told to a connection that is not ready: it is told what it does not know
//       when it is (continuation).

import type { Host } from '../../actors/runtime/host.ts';
import type { Failure } from '../../machines/index.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { Continuation } from './continuation.ts';
import type { LineOptions, LinePorts } from './line-ports.ts';
import { Link, type LineClosed } from './link.ts';
import { Rotation } from './rotation.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportEvent,
} from './transport.ts';
import { UserSound } from '../audio/user-sound.ts';

interface Transfer {
  /** The number of the configuration that must be answered; 0: it is made on a new connection. */
  readonly configure: number;
  /** The other agent is ready. */
  isReady: boolean;
}

export class Line {
  readonly #transport: Transport;
  readonly #host: Host;
  readonly #ports: LinePorts;
  readonly #sound: UserSound;
  readonly #continuation: Continuation;
  readonly #rotation: Rotation;
  #isWanted = false;
  #inUse: Link | null = null;
  /** Takes the place of the one in use, if all goes well. */
  #candidate: Link | null = null;
  #transfer: Transfer | null = null;

  constructor(transport: Transport, host: Host, ports: LinePorts, options: LineOptions) {
    this.#transport = transport;
    this.#host = host;
    this.#ports = ports;
    this.#sound = new UserSound(options.keptAudioMs);
    this.#continuation = new Continuation(
      host.environment,
      () => ports.history(),
      () => ports.told(),
    );
    this.#rotation = new Rotation(host, options, {
      isAtRest: () => ports.isAtRest(),
      canResume: () => transport.capabilities.resumes && this.#continuation.isPossible,
      prepare: () => this.#prepare(ports.configuration()),
      drop: () => this.#dropCandidate(),
      takeOver: () => this.#exchange(),
      renew: () => this.#renew(),
    });
  }

  /** There is somebody to talk to. */
  get isUp(): boolean {
    return this.#inUse?.isReady === true;
  }

  /** Another agent is being prepared: nobody shall speak. */
  get isHandingOver(): boolean {
    return this.#transfer !== null;
  }

  dial(configuration: TransportConfiguration): void {
    this.#isWanted = true;
    this.#inUse = this.#connect(configuration, true);
    this.#listen(this.#inUse);
  }

  /** Closes what there is; it may be dialled again. */
  hangUp(): void {
    const link = this.#inUse;
    this.#clear();
    if (link && !link.isReady) this.#continuation.unanswered(link.beginning);
    this.#rotation.tell({ type: 'line.closed' });
  }

  /** Closes what there is, for good. */
  close(): void {
    this.#isWanted = false;
    this.hangUp();
    this.#rotation.stop();
    this.#sound.clear();
  }

  /** Nobody speaks. */
  rested(): void {
    this.#rotation.rested();
  }

  send(command: TransportCommand): void {
    if (this.isUp) this.#inUse?.send(command);
  }

  /**
   * Sound of the user. `isUnderstood`: there are no words of theirs that are not known yet.
   * Returns whether it was sent, or else kept (CONNECTION-LINE-2).
   */
  sendAudio(frame: AudioFrame, isUnderstood: boolean): boolean {
    if (this.isUp && !this.#transfer) {
      this.#inUse?.sendAudio(frame);
      this.#sound.given(frame, isUnderstood);
      return true;
    }
    if (this.#isWanted) this.#sound.keep(frame);
    return false;
  }

  /** The newest `ms` of what was sent were not understood: they are kept, too. Returns whether there are any. */
  hearAgain(ms: number): boolean {
    return this.#sound.again(ms);
  }

  /** What was kept, for who listens now. */
  takeSound(): readonly AudioFrame[] {
    return this.isUp && !this.#transfer ? this.#sound.take() : [];
  }

  /** Instructions or tools have changed. False: the wire cannot do that. */
  configure(configuration: TransportConfiguration): boolean {
    if (!this.#transport.capabilities.updatesSession) return false;
    this.#inUse?.configure(configuration);
    return true;
  }

  /** Prepares the model for another agent. Where the line is lost already, it is the loss that ends the transfer. */
  transfer(configuration: TransportConfiguration): void {
    if (!this.#inUse) return;
    const configure = this.#inUse.configures + 1;
    const { updatesSession } = this.#transport.capabilities;
    this.#transfer = { configure: updatesSession ? configure : 0, isReady: false };
    this.#rotation.tell({ type: 'transfer.began' });
    if (!this.configure(configuration)) this.#prepare(configuration);
  }

  /** The transfer is over, as the session sees it; on an error the model shall be again who `before` says. */
  endTransfer(error: Failure | null, before: () => TransportConfiguration): void {
    const transfer = this.#transfer;
    const candidate = this.#candidate;
    const link = this.#inUse;
    this.#transfer = null;
    if (!transfer || !link) return;
    if (candidate && !error) {
      if (candidate.lost) this.#lost(candidate.lost);
      else this.#exchange();
      return;
    }
    this.#dropCandidate();
    // CONNECTION-LINE-4. A refusal has changed nothing; an answer that is missing, or came too late, may have.
    const isRefused = link.answered >= transfer.configure && !transfer.isReady;
    if (transfer.configure > 0 && error && !isRefused) link.configure(before());
    this.#rotation.tell({ type: 'transfer.ended' });
  }

  /** The candidate takes over (CONNECTION-LINE-3). */
  #exchange(): void {
    const link = this.#candidate;
    if (!link) return;
    this.#candidate = null;
    this.#inUse?.close();
    this.#inUse = link;
    this.#continuation.replaced(link.resume);
    this.#ports.replaced(link.untold);
    const configuration = this.#ports.configuration();
    if (!link.isConfiguredAs(configuration)) this.configure(configuration);
    this.#opened(link);
  }

  #renew(): void {
    this.#continuation.ended();
    this.#clear();
    this.#ports.renewing();
  }

  #lost(event: LineClosed): void {
    this.#clear();
    this.#rotation.tell({ type: 'line.lost' });
    this.#ports.lost(event);
  }

  #clear(): void {
    this.#transfer = null;
    this.#dropCandidate();
    this.#inUse?.close();
    this.#inUse = null;
  }

  #prepare(configuration: TransportConfiguration): void {
    this.#candidate = this.#connect(configuration, false);
    this.#listen(this.#candidate);
  }

  #dropCandidate(): void {
    this.#candidate?.close();
    this.#candidate = null;
  }

  #connect(configuration: TransportConfiguration, goesOn: boolean): Link {
    const beginning = this.#continuation.begin(goesOn);
    return new Link(this.#transport, this.#host, configuration, beginning);
  }

  #listen(link: Link): void {
    link.listen({
      heard: (from, event) => this.#hear(from, event),
      spoke: (from, frame) => {
        if (this.#inUse === from) this.#ports.spoke(frame);
      },
    });
  }

  #opened({ since }: Link): void {
    this.#rotation.opened(since, this.#transport.capabilities.maxConnectionMs);
  }

  #hear(link: Link, event: TransportEvent): void {
    if (event.type === 'usage.reported') this.#ports.happened(event);
    else if (this.#inUse === link) this.#said(link, event);
    else if (this.#candidate === link) this.#candidateSaid(link, event);
  }

  #said(link: Link, event: TransportEvent): void {
    const { type } = event;
    if (type === 'transport.ready') {
      this.#continuation.answered(link.beginning);
      this.#ports.ready(link.untold);
      this.#opened(link);
    } else if (type === 'transport.resumable') {
      this.#continuation.offered(event.resume);
      this.#rotation.rested();
    } else if (type === 'transport.expiring') this.#rotation.expiring(event.inMs);
    else if (type === 'session.configured') this.#configured(link, null);
    else if (type === 'session.refused') {
      const { code, message } = event;
      this.#configured(link, { code, message, retryable: false });
    } else if (type === 'transport.closed') this.#ended(link, event);
    else {
      if (type === 'utterance.transcribed' && event.final)
        this.#continuation.said(event.utteranceId);
      if (type === 'assistant.transcribed' && event.final) this.#continuation.said(event.itemId);
      this.#ports.happened(event);
    }
  }

  #ended({ isReady, beginning }: Link, event: LineClosed): void {
    if (isReady) this.#continuation.ended();
    else if (event.code === null) this.#continuation.unanswered(beginning);
    else this.#continuation.answered(beginning);
    // Where another one stands ready nothing is lost.
    if (this.#rotation.isPrepared) this.#rotation.tell({ type: 'line.lost' });
    else this.#lost(event);
  }

  #configured({ answered }: Link, error: Failure | null): void {
    const transfer = this.#transfer;
    if (transfer && !transfer.isReady && transfer.configure === answered) {
      transfer.isReady = error === null;
      this.#ports.transferred(error);
    } else if (error) this.#ports.happened(refusal(error));
  }

  #candidateSaid(link: Link, event: TransportEvent): void {
    if (event.type === 'transport.ready') {
      if (this.#transfer) this.#ports.transferred(null);
      else this.#rotation.tell({ type: 'candidate.ready' });
    } else if (event.type === 'transport.closed') {
      if (!this.#transfer) {
        this.#candidate = null;
        this.#rotation.candidateLost();
      } else if (!link.isReady) {
        const message = `The connection to ${this.#transport.name} for the other agent failed: ${event.reason}`;
        const { retryable } = event;
        this.#ports.transferred({ code: 'TRANSPORT_LOST', message, retryable });
      }
    }
  }
}

function refusal({ code, message }: Failure): TransportEvent {
  return { type: 'transport.error', code, message, responseKey: null, raw: null };
}
