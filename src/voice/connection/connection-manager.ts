// The sequence of connections to the voice model, which are opened, used, replaced and closed. A connection is replaced
// in order to switch to another agent (if the transport cannot change the session), or before the connection expires
// (rotation); both work in the same way.
//
// Owns:     the connection in use, the candidate that may replace it, the resume value for the next connection, the
//           rotation timers, and the user's audio while no model can receive it.
// Does not: decide when to reconnect or rotate (session and rotation machines), choose the messages that a model needs,
//           or determine what is said (lead agent).
//
// Invariants
//   CONNECTION-MANAGER-1. The manager listens only to the connection in use, but counts the usage reported by any
//       connection. A fault in an adapter does not end the process.
//   CONNECTION-MANAGER-2. While no model can receive the user's audio (because another agent is being prepared, or the
//       connection is lost or not ready), the manager buffers the newest `keptAudioMs` of it. It sends this audio
//       afterwards, once and in order.
//   CONNECTION-MANAGER-3. Make before break: the connection in use stays open until the candidate is ready, so that a
//       failed replacement changes nothing. The old connection is closed when the candidate takes over, so that the
//       user is never heard by two models. If the next connection resumes the connection in use, the connection in use
//       is closed first.
//   CONNECTION-MANAGER-4. After a failed transfer, the manager sends the model its previous configuration if the model
//       may have adopted the new one.
//   CONNECTION-MANAGER-5. The manager sends no messages to a connection that is not ready. Once the connection is
//       ready, the manager sends it the messages that its model does not have yet.
//   CONNECTION-MANAGER-6. The manager stores audio that it has sent for as long as the audio may have to be sent again,
//       because the connection may end before the words are recognised. It stores up to `keptAudioMs` while there are
//       unrecognised words, and otherwise only as much as a transport needs to detect speech.
//   CONTINUATION-1. A resumed model has the conversation as it was at the end of its earlier connection. The adapter
//       resends the messages that its server had not received. A model that accepted the history has the history. Any
//       other model has no conversation. The session sends each model the messages that the model does not have. A
//       model also has everything that was said on its own connection, even if the conversation does not contain it
//       yet.
//   CONTINUATION-2. A resume value that the server has responded to is not reused. If there is no response, a resume
//       value is tried up to `MAX_UNANSWERED` times.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import { callSafely, type Host } from '../../actors/runtime/host.ts';
import type { Shown } from '../../actors/runtime/hosting.ts';
import { TransientMachine } from '../../actors/runtime/transient-machine.ts';
import type { BackoffInput, Failure } from '../../machines/index.ts';
import {
  type RotationEffects,
  rotationMachine,
  type RotationFact,
} from '../../machines/rotation-machine.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { createBoundedBuffer, RecentSound, type BoundedBuffer } from '../audio/bounded-buffer.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import {
  Connection,
  knownMessages,
  messageName,
  type ConnectionClosed,
  type KnownMessages,
} from './connection.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportEvent,
} from './transport.ts';

/**
 * A connection is replaced after this fraction of its lifetime at the latest. A random amount up to `DUE_CHANCE` is
 * subtracted.
 */
const DUE = 0.95;
const DUE_CHANCE = 0.05;
/**
 * The rotation stops waiting for a pause this long before the end of a connection. If the lifetime is short,
 * `LAST_FRACTION` of the lifetime is used instead.
 */
const LAST_MOMENT_MS = 5000;
const LAST_FRACTION = 0.25;
/** The time that a transport takes to detect the start of speech. */
const ONSET_LAG_MS = 2000;
const MAX_UNANSWERED = 3;

export interface ConnectionManagerOptions {
  /** How much of the newest user audio is stored while no model can hear it. */
  readonly keptAudioMs: number;
  readonly connectTimeoutMs: number;
  /** The pauses before another candidate is tried after a failure. */
  readonly backoff: BackoffInput;
  /** Writes the session's notes, for a transport that adds notes itself. */
  readonly notes?: NoteWriter;
}

/** The lead agent as seen by the connection manager. */
export interface ConnectionOwner {
  /** The session id. */
  readonly id: string;
  /** The current lead agent's configuration, for the next connection. */
  readonly configuration: TransportConfiguration;
  /** Whether neither side is speaking or about to speak. */
  readonly isIdle: boolean;
  /** Returns the conversation as transport commands. */
  history(): readonly TransportCommand[];
  /** Returns the part of the history that the current model has received or spoken. */
  knownHistory(): readonly TransportCommand[];
  /** Called when a connection is ready. Its model still needs the `pending` messages. */
  connectionReady(pending: readonly TransportCommand[]): void;
  /** Called after the switch to another connection. Its model still needs the `pending` messages. */
  connectionReplaced(pending: readonly TransportCommand[]): void;
  /** Called when the connection in use is closed intentionally and about to be reopened. */
  connectionRenewing(): void;
  connectionLost(event: ConnectionClosed): void;
  /** Reports that the other agent is ready, or why it cannot become ready. Called exactly once per `transfer`. */
  transferAnswered(error: Failure | null): void;
  /** Handles events that do not concern the connection. */
  handle(event: TransportEvent): void;
  handleAudio(frame: AudioFrame): void;
}

interface Transfer {
  /** The number of the configuration that the server has to confirm; 0 if the transfer uses a new connection. */
  readonly configure: number;
  /** Whether the other agent is ready. */
  isReady: boolean;
}

export class ConnectionManager {
  readonly #transport: Transport;
  readonly #host: Host;
  readonly #owner: ConnectionOwner;
  readonly #options: ConnectionManagerOptions;
  /** Whether the session has a connection or should have one. */
  #isWanted = false;
  #inUse: Connection | null = null;
  /** The connection that replaces the one in use once it is ready. */
  #candidate: Connection | null = null;
  #transfer: Transfer | null = null;

  /** The user audio that is stored for the next model. */
  readonly #keptAudio: BoundedBuffer;
  readonly #sentAudio = new RecentSound();

  /** The resume value of the connection in use; null if the connection cannot be resumed. */
  #resume: unknown = null;
  /** The messages that the model had when the resumable connection ended. */
  #known: KnownMessages = new Set();
  /** The newest messages that were spoken on the connection in use. Older ones are in the conversation. */
  readonly #spoken = new RecentIds();
  #unanswered = 0;

  readonly #rotation: TransientMachine<typeof rotationMachine, RotationFact, RotationEffects>;
  #facts: RotationFact[] = [];
  #isRotating = false;

  constructor(
    transport: Transport,
    host: Host,
    owner: ConnectionOwner,
    options: ConnectionManagerOptions,
  ) {
    this.#transport = transport;
    this.#host = host;
    this.#owner = owner;
    this.#options = options;
    this.#keptAudio = createBoundedBuffer({ maxMs: options.keptAudioMs, keep: 'newest' });
    const { connectTimeoutMs, backoff } = options;
    const safely = (carryOut: () => void) => () => callSafely(host, 'transport', carryOut);
    this.#rotation = new TransientMachine(rotationMachine, `${owner.id}/rotation`, host, {
      input: { connectTimeoutMs, ...backoff },
      isBackground: true,
      now: () => ({
        isIdle: owner.isIdle,
        canResume: transport.capabilities.resumes && this.#canResume,
      }),
      due: (fact) => this.#rotate(fact),
      handlers: {
        prepare: safely(() => this.#prepare(owner.configuration)),
        drop: safely(() => this.#dropCandidate()),
        takeOver: safely(() => this.#takeOver()),
        renew: safely(() => {
          this.#rememberKnown();
          this.#clear();
          owner.connectionRenewing();
        }),
      },
    });
  }

  /** The rotation machine's actor, for `inspect`. */
  get rotation(): Shown {
    return this.#rotation.shown;
  }

  /** Whether a model is connected and ready. */
  get isReady(): boolean {
    return this.#inUse?.isReady === true;
  }

  /** Whether another agent is being prepared; in the meantime, neither side may speak. */
  get isTransferring(): boolean {
    return this.#transfer !== null;
  }

  /** Whether a model can listen and speak now. */
  get isAvailable(): boolean {
    return this.isReady && !this.isTransferring;
  }

  connect(configuration: TransportConfiguration): void {
    this.#isWanted = true;
    this.#spoken.clear();
    const resumed = this.#canResume ? { resume: this.#resume, known: this.#known } : null;
    this.#inUse = this.#open(configuration, resumed);
    this.#listen(this.#inUse);
  }

  /** Closes the connections; the session may open another one later. */
  disconnect(): void {
    const connection = this.#inUse;
    this.#clear();
    if (connection && !connection.isReady) this.#resumeUnanswered(connection);
    this.#rotate({ type: 'connection.closed' });
  }

  /** Closes the connections permanently. */
  close(): void {
    this.#isWanted = false;
    this.disconnect();
    this.#rotation.stop();
    this.#keptAudio.clear();
    this.#sentAudio.clear();
  }

  send(command: TransportCommand): void {
    if (this.isReady) this.#inUse?.send(command);
  }

  /** Sends changed instructions or tools. Returns false if the transport cannot change them. */
  configure(configuration: TransportConfiguration): boolean {
    if (!this.#transport.capabilities.updatesSession) return false;
    this.#inUse?.configure(configuration);
    return true;
  }

  /**
   * Sends user audio. `isUnderstood`: whether all words so far have been recognised. Returns whether the audio was
   * sent; otherwise it was buffered (CONNECTION-MANAGER-2).
   */
  sendAudio(frame: AudioFrame, isUnderstood: boolean): boolean {
    if (this.isAvailable) {
      this.#inUse?.sendAudio(frame);
      const { keptAudioMs } = this.#options;
      const mostMs = isUnderstood ? Math.min(ONSET_LAG_MS, keptAudioMs) : keptAudioMs;
      this.#sentAudio.add(frame, mostMs);
      return true;
    }
    if (this.#isWanted) this.#keptAudio.push(frame);
    return false;
  }

  /**
   * Stores the newest `ms` of the sent audio for the next model, because the words in it were not recognised. Returns
   * whether there is any such audio (CONNECTION-MANAGER-6).
   */
  keepSentAudio(ms: number): boolean {
    const later = this.#keptAudio.drain();
    const again = this.#sentAudio.take(ms);
    for (const frame of [...again, ...later]) this.#keptAudio.push(frame);
    return again.length > 0;
  }

  /** Removes and returns the stored audio for a model that can listen now; empty if there is none. */
  takeKeptAudio(): readonly AudioFrame[] {
    return this.isAvailable ? this.#keptAudio.drain() : [];
  }

  /** Prepares the model for another agent. If the connection is already lost, the loss ends the transfer. */
  transfer(configuration: TransportConfiguration): void {
    if (!this.#inUse) return;
    const configure = this.#inUse.configures + 1;
    const { updatesSession } = this.#transport.capabilities;
    this.#transfer = { configure: updatesSession ? configure : 0, isReady: false };
    this.#rotate({ type: 'transfer.began' });
    if (!this.configure(configuration)) this.#prepare(configuration);
  }

  /**
   * Ends the transfer with the outcome that the session has decided. The owner already returns the configuration of the
   * new lead agent (after an error, of the previous one).
   */
  endTransfer(error: Failure | null): void {
    const transfer = this.#transfer;
    const candidate = this.#candidate;
    const connection = this.#inUse;
    this.#transfer = null;
    if (!transfer || !connection) return;
    if (candidate && !error) {
      if (candidate.lost) this.#lose(candidate.lost);
      else this.#takeOver();
      return;
    }
    this.#dropCandidate();
    // CONNECTION-MANAGER-4. If the change was refused, the model is unchanged. If the response is missing or late, the
    //     model may have changed.
    const isRefused = connection.answered >= transfer.configure && !transfer.isReady;
    if (transfer.configure > 0 && error && !isRefused)
      connection.configure(this.#owner.configuration);
    this.#rotate({ type: 'transfer.ended' });
  }

  #open(
    configuration: TransportConfiguration,
    resumed: { readonly resume: unknown; readonly known: KnownMessages } | null,
  ): Connection {
    const { notes } = this.#options;
    const history = (): readonly TransportCommand[] => this.#owner.history();
    return new Connection(this.#transport, this.#host, configuration, { history, notes, resumed });
  }

  #listen(connection: Connection): void {
    connection.listen(
      (event) => this.#handle(connection, event),
      (frame) => {
        if (this.#inUse === connection) this.#owner.handleAudio(frame);
      },
    );
  }

  #prepare(configuration: TransportConfiguration): void {
    this.#candidate = this.#open(configuration, null);
    this.#listen(this.#candidate);
  }

  #dropCandidate(): void {
    this.#candidate?.close();
    this.#candidate = null;
  }

  /** Replaces the connection in use with the candidate (CONNECTION-MANAGER-3). */
  #takeOver(): void {
    const connection = this.#candidate;
    if (!connection) return;
    this.#candidate = null;
    this.#inUse?.close();
    this.#inUse = connection;
    this.#spoken.clear();
    this.#offerResume(connection.resume);
    this.#owner.connectionReplaced(connection.pendingCommands);
    const { configuration } = this.#owner;
    if (!connection.isConfiguredAs(configuration)) this.configure(configuration);
    this.#opened(connection);
  }

  #lose(event: ConnectionClosed): void {
    this.#clear();
    this.#rotate({ type: 'connection.lost' });
    this.#owner.connectionLost(event);
  }

  #clear(): void {
    this.#transfer = null;
    this.#dropCandidate();
    this.#inUse?.close();
    this.#inUse = null;
  }

  #handle(connection: Connection, event: TransportEvent): void {
    if (event.type === 'usage.reported') this.#owner.handle(event);
    else if (this.#inUse === connection) this.#handleInUse(connection, event);
    else if (this.#candidate === connection) this.#handleCandidate(connection, event);
  }

  #handleInUse(connection: Connection, event: TransportEvent): void {
    const { type } = event;
    if (type === 'transport.ready') {
      this.#resumeAnswered(connection);
      this.#owner.connectionReady(connection.pendingCommands);
      this.#opened(connection);
    } else if (type === 'transport.resumable') {
      this.#offerResume(event.resume);
      this.rotateIfDue();
    } else if (type === 'transport.expiring') {
      const lastAt = this.#host.environment.clock.now() + event.inMs - lastMomentMs(event.inMs);
      this.#rotate({ type: 'connection.expiring', lastAt });
    } else if (type === 'session.configured') this.#configured(connection, null);
    else if (type === 'session.refused') {
      const { code, message } = event;
      this.#configured(connection, { code, message, retryable: false });
    } else if (type === 'transport.closed') this.#closed(connection, event);
    else {
      if (type === 'utterance.transcribed' && event.final)
        this.#spoken.add(messageName(event.utteranceId));
      if (type === 'assistant.transcribed' && event.final)
        this.#spoken.add(messageName(event.itemId));
      this.#owner.handle(event);
    }
  }

  #closed(connection: Connection, event: ConnectionClosed): void {
    if (connection.isReady) this.#rememberKnown();
    else if (event.code === null) this.#resumeUnanswered(connection);
    else this.#resumeAnswered(connection);
    // If a candidate is ready, it takes over without interruption.
    if (this.#isPrepared) this.#rotate({ type: 'connection.lost' });
    else this.#lose(event);
  }

  #configured({ answered }: Connection, error: Failure | null): void {
    const transfer = this.#transfer;
    if (transfer && !transfer.isReady && transfer.configure === answered) {
      transfer.isReady = error === null;
      this.#owner.transferAnswered(error);
    } else if (error) {
      const { code, message } = error;
      this.#owner.handle({ type: 'transport.error', code, message, responseKey: null, raw: null });
    }
  }

  #handleCandidate(connection: Connection, event: TransportEvent): void {
    if (event.type === 'transport.ready') {
      if (this.#transfer) this.#owner.transferAnswered(null);
      else this.#rotate({ type: 'candidate.ready' });
    } else if (event.type === 'transport.closed') {
      if (!this.#transfer) {
        this.#candidate = null;
        this.#rotate({ type: 'candidate.lost', jitter: this.#host.environment.random.next() });
      } else if (!connection.isReady) {
        const message = `The connection to ${this.#transport.name} for the other agent failed: ${event.reason}`;
        const { retryable } = event;
        this.#owner.transferAnswered({ code: 'TRANSPORT_LOST', message, retryable });
      }
    }
  }

  get #canResume(): boolean {
    return this.#resume !== null;
  }

  /** Records the resume value of the connection in use; null if the connection can no longer be resumed. */
  #offerResume(resume: unknown): void {
    this.#resume = resume ?? null;
    this.#unanswered = 0;
  }

  /** Records what the model knows when the connection in use ends. */
  #rememberKnown(): void {
    if (!this.#canResume) return;
    const told = knownMessages(this.#owner.knownHistory());
    this.#known = new Set([...told, ...this.#spoken.all]);
  }

  /** Records that the server has accepted or refused a resumption, so that the resume value is not reused. */
  #resumeAnswered({ resumedFrom }: Connection): void {
    if (resumedFrom === this.#resume) this.#resume = null;
  }

  /** Records that a resumed connection failed before the server had responded. */
  #resumeUnanswered({ resumedFrom }: Connection): void {
    if (resumedFrom === undefined) return;
    this.#unanswered += 1;
    if (this.#unanswered >= MAX_UNANSWERED) this.#resume = null;
  }

  /** Called in a moment of silence, in which the connection may be replaced. */
  rotateIfDue(): void {
    if (this.#isPrepared || this.#rotation.snapshot.matches('awaiting'))
      this.#rotate({ type: 'connection.rested' });
  }

  /** Whether a candidate is ready and waiting for silence. */
  get #isPrepared(): boolean {
    return this.#rotation.snapshot.matches({ making: 'prepared' });
  }

  /** Passes this connection's lifetime to the rotation machine. */
  #opened({ since }: Connection): void {
    const maxMs = this.#transport.capabilities.maxConnectionMs;
    const { random } = this.#host.environment;
    this.#rotate(
      maxMs === null
        ? { type: 'connection.opened', dueAt: null, lastAt: 0 }
        : {
            type: 'connection.opened',
            dueAt: since + maxMs * (DUE - DUE_CHANCE * random.next()),
            lastAt: since + maxMs - lastMomentMs(maxMs),
          },
    );
  }

  /**
   * Sends a fact to the rotation machine. The machine's effects are executed before this method returns. If other
   * effects are being executed, they are executed afterwards.
   */
  #rotate(fact: RotationFact): void {
    this.#facts.push(fact);
    if (this.#isRotating) return;
    this.#isRotating = true;
    for (let next = this.#facts.shift(); next; next = this.#facts.shift())
      this.#rotation.send(next);
    this.#isRotating = false;
  }
}

function lastMomentMs(ofMs: number): number {
  return Math.min(LAST_MOMENT_MS, ofMs * LAST_FRACTION);
}
