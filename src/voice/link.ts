// One connection to the voice model, and what it has said of itself.
//
// Owns:     whether it is ready, how it was configured, what it gave to go on with.
// Does not: know whether it is in use.
//
// Nothing that an adapter does brings the process down: what its events lead to is called
// safely; an error of its stream, or of its `connect`, is the end of the connection.

import { EMPTY, of } from 'rxjs';
import { callSafely, type Host } from '../actors/runtime/host.ts';
import { messageOf, ProviderError } from '../errors.ts';
import type { AudioFrame } from './audio-frame.ts';
import type { Beginning } from './continuation.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportEvent,
} from './transport.ts';

export type LineClosed = Extract<TransportEvent, { type: 'transport.closed' }>;
type Ready = Extract<TransportEvent, { type: 'transport.ready' }>;

export interface LinkPorts {
  heard(link: Link, event: TransportEvent): void;
  spoke(link: Link, frame: AudioFrame): void;
}

/** Stands for the connection of a transport that threw: it has ended, and will not come about later. */
function refused(name: string, thrown: unknown): TransportConnection {
  const retryable = thrown instanceof ProviderError && thrown.retryable;
  const reason = `connect() of ${name} threw: ${messageOf(thrown)}`;
  return {
    events: of<TransportEvent>({ type: 'transport.closed', code: null, reason, retryable }),
    audio: EMPTY,
    sendAudio() {},
    send() {},
    close: () => Promise.resolve(),
  };
}

export class Link {
  readonly beginning: Beginning;
  /** When it was opened; milliseconds since 1970. */
  readonly since: number;
  readonly #host: Host;
  readonly #connection: TransportConnection;
  #configuration: string;
  #configures = 0;
  #answered = 0;
  #ready: Ready | null = null;
  #resume: unknown = null;
  #lost: LineClosed | null = null;

  constructor(
    transport: Transport,
    host: Host,
    configuration: TransportConfiguration,
    beginning: Beginning,
  ) {
    this.#host = host;
    this.beginning = beginning;
    this.since = host.environment.clock.now();
    this.#configuration = JSON.stringify(configuration);
    try {
      this.#connection = transport.connect(configuration, beginning.context);
    } catch (error) {
      host.report(error, 'transport');
      this.#connection = refused(transport.name, error);
    }
  }

  /** It can be talked to. */
  get isReady(): boolean {
    return this.#ready !== null;
  }

  /** How it ended; null: it has not. */
  get lost(): LineClosed | null {
    return this.#lost;
  }

  /** What it gave to go on with; null: it cannot be gone on from. */
  get resume(): unknown {
    return this.#resume;
  }

  /** How often it was configured since it was opened. */
  get configures(): number {
    return this.#configures;
  }

  /** How many of these it has answered. */
  get answered(): number {
    return this.#answered;
  }

  /** What it is still to be told, now that it is ready. */
  get untold(): readonly TransportCommand[] {
    return this.#ready ? this.beginning.untold(this.#ready) : [];
  }

  /** Hears what it says, from the beginning. */
  listen(ports: LinkPorts): void {
    const heard = (event: TransportEvent): void =>
      callSafely(this.#host, 'transport', () => {
        this.#note(event);
        ports.heard(this, event);
      });
    this.#connection.audio.subscribe((frame) =>
      callSafely(this.#host, 'transport', () => ports.spoke(this, frame)),
    );
    this.#connection.events.subscribe({
      next: heard,
      error: (error: unknown) =>
        heard({ type: 'transport.closed', code: null, reason: messageOf(error), retryable: true }),
    });
  }

  send(command: TransportCommand): void {
    this.#connection.send(command);
  }

  sendAudio(frame: AudioFrame): void {
    this.#connection.sendAudio(frame);
  }

  configure(configuration: TransportConfiguration): void {
    this.#configures += 1;
    this.#configuration = JSON.stringify(configuration);
    this.#connection.send({ type: 'session.configure', configuration });
  }

  /** Was it told this last? */
  isConfiguredAs(configuration: TransportConfiguration): boolean {
    return JSON.stringify(configuration) === this.#configuration;
  }

  close(): void {
    void this.#connection.close();
  }

  #note(event: TransportEvent): void {
    if (event.type === 'transport.ready') this.#ready = event;
    else if (event.type === 'transport.resumable') this.#resume = event.resume ?? null;
    else if (event.type === 'transport.closed') this.#lost = event;
    else if (event.type === 'session.configured' || event.type === 'session.refused')
      this.#answered += 1;
  }
}
