// The connection to the voice model: dialled, used, replaced, closed. A connection is replaced for another
// agent (if the transport cannot change the session) and, before it ends, for a fresh one (rotation), in the
// same way.
//
// Owns:     the connection in use, the candidate that is being prepared to replace it, and the user's sound
//           while no model can take it.
// Does not: decide when to redial (session machine) or to rotate (rotation machine), how a new connection
//           begins (continuation), or the content of speech.
//
// Invariants
//   CONNECTION-LINE-1. Only the connection in use is listened to; usage is counted for every connection
//       whenever it reports it. No fault of an adapter brings the process down.
//   CONNECTION-LINE-2. While no model can take the user's sound (another agent is being prepared, the
//       connection is lost or not ready), the newest `keptAudioMs` of it are kept and sent afterwards, in
//       order.
//   CONNECTION-LINE-3. Make before break: the connection in use stays until the candidate is ready, so that a
//       failed replacement changes nothing. It is closed when the candidate takes over, so that no two models
//       hear the user. If the candidate resumes where the connection in use ends, that one is closed first.
//   CONNECTION-LINE-4. After a failed transfer the model gets its previous configuration again, if it may
//       have adopted the new one.
//   CONNECTION-LINE-5. A connection that is not ready receives no messages: when it is ready it receives
//       those that it does not know (continuation).

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
  /** The number of the configuration that must be answered; 0 if the transfer uses a new connection. */
  readonly configure: number;
  /** Whether the other agent is ready. */
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
  /** The connection that replaces the one in use if it becomes ready. */
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

  /** Whether a model is connected and ready. */
  get isUp(): boolean {
    return this.#inUse?.isReady === true;
  }

  /** Whether another agent is being prepared; no side is to speak meanwhile. */
  get isHandingOver(): boolean {
    return this.#transfer !== null;
  }

  dial(configuration: TransportConfiguration): void {
    this.#isWanted = true;
    this.#inUse = this.#connect(configuration, true);
    this.#listen(this.#inUse);
  }

  /** Closes the connections; the line may be dialled again. */
  hangUp(): void {
    const link = this.#inUse;
    this.#clear();
    if (link && !link.isReady) this.#continuation.unanswered(link.beginning);
    this.#rotation.tell({ type: 'line.closed' });
  }

  /** Closes the connections for good. */
  close(): void {
    this.#isWanted = false;
    this.hangUp();
    this.#rotation.stop();
    this.#sound.clear();
  }

  /** Handles a moment in which no side speaks. */
  rested(): void {
    this.#rotation.rested();
  }

  send(command: TransportCommand): void {
    if (this.isUp) this.#inUse?.send(command);
  }

  /**
   * Sends sound of the user. `isUnderstood`: no words of the user are still unknown. Returns whether the
   * sound was sent; otherwise it was kept (CONNECTION-LINE-2).
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

  /** Keeps the newest `ms` of sent sound, whose words were not understood. Returns whether there is any. */
  hearAgain(ms: number): boolean {
    return this.#sound.again(ms);
  }

  /** Takes the kept sound, for the model that listens now. */
  takeSound(): readonly AudioFrame[] {
    return this.isUp && !this.#transfer ? this.#sound.take() : [];
  }

  /** Sends changed instructions or tools. Returns false if the transport cannot change them. */
  configure(configuration: TransportConfiguration): boolean {
    if (!this.#transport.capabilities.updatesSession) return false;
    this.#inUse?.configure(configuration);
    return true;
  }

  /** Prepares the model for another agent. If the connection is already lost, the loss ends the transfer. */
  transfer(configuration: TransportConfiguration): void {
    if (!this.#inUse) return;
    const configure = this.#inUse.configures + 1;
    const { updatesSession } = this.#transport.capabilities;
    this.#transfer = { configure: updatesSession ? configure : 0, isReady: false };
    this.#rotation.tell({ type: 'transfer.began' });
    if (!this.configure(configuration)) this.#prepare(configuration);
  }

  /**
   * Ends the transfer as the session decided; on an error the model gets the configuration of `before` again.
   */
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
    // CONNECTION-LINE-4. A refusal has changed nothing; a missing or late answer may have.
    const isRefused = link.answered >= transfer.configure && !transfer.isReady;
    if (transfer.configure > 0 && error && !isRefused) link.configure(before());
    this.#rotation.tell({ type: 'transfer.ended' });
  }

  /** Replaces the connection in use with the candidate (CONNECTION-LINE-3). */
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
    // If a candidate is ready, the loss is no interruption.
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
