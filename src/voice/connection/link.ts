// One connection to the voice model, and what it has said of itself.
//
// Owns:     whether it is ready, how it was configured, what it gave to go on with.
// Does not: know whether it is in use.
//
// Nothing that an adapter does brings the process down: what its events lead to is called
// safely; an error of its stream, or of its `connect`, is the end of the connection.
//
// Invariant
//   LINK-1. An id of the wire that no journal could keep is another one in the session (storable.ts),
//           and again the wire's own in what is sent to it.

import { EMPTY, of } from 'rxjs';
import { callSafely, type Host } from '../../actors/runtime/host.ts';
import { storableId, storableText } from '../../values/storable.ts';
import { shown } from '../../values/checks.ts';
import { ConfigurationError, messageOf, ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
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

/** The properties of events, commands and frames that hold an id of the wire. */
const ID_KEYS = [
  'utteranceId',
  'itemId',
  'afterItemId',
  'responseId',
  'callId',
  'delegationId',
] as const;
/** The properties of events that hold words. */
const TEXT_KEYS = ['text', 'name', 'arguments', 'message', 'reason'] as const;

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
  /** The ids of the wire that are others in the session, by those; most wires have none (LINK-1). */
  #wireIds: Map<string, string> | null = null;

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
      const connection = transport.connect(configuration, beginning.context);
      if (typeof connection?.events?.subscribe !== 'function')
        throw new ConfigurationError(
          'INVALID_TRANSPORT',
          `Expected connect() of ${transport.name} to return a connection, got ${shown(connection)}`,
        );
      this.#connection = connection;
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
        const storable = this.#fromWire(event);
        this.#note(storable);
        ports.heard(this, storable);
      });
    this.#connection.audio.subscribe((frame) =>
      callSafely(this.#host, 'transport', () => ports.spoke(this, this.#withIds(frame))),
    );
    this.#connection.events.subscribe({
      next: heard,
      error: (error: unknown) =>
        heard({ type: 'transport.closed', code: null, reason: messageOf(error), retryable: true }),
    });
  }

  send(command: TransportCommand): void {
    callSafely(this.#host, 'transport', () => this.#connection.send(this.#toWire(command)));
  }

  sendAudio(frame: AudioFrame): void {
    callSafely(this.#host, 'transport', () => this.#connection.sendAudio(frame));
  }

  configure(configuration: TransportConfiguration): void {
    this.#configures += 1;
    this.#configuration = JSON.stringify(configuration);
    this.send({ type: 'session.configure', configuration });
  }

  /** Was it told this last? */
  isConfiguredAs(configuration: TransportConfiguration): boolean {
    return JSON.stringify(configuration) === this.#configuration;
  }

  close(): void {
    callSafely(this.#host, 'transport', () => this.#connection.close());
  }

  /** LINK-1 */
  #fromWire(event: TransportEvent): TransportEvent {
    const named = withTexts(this.#withIds(event));
    if (named.type !== 'response.ended') return named;
    const audio = named.audio.map((item) => this.#withIds(item));
    return audio.some((item, at) => item !== named.audio[at]) ? { ...named, audio } : named;
  }

  #withIds<T extends object>(value: T): T {
    return replaced(value, ID_KEYS, (id) => {
      const stored = storableId(id);
      if (stored !== id) (this.#wireIds ??= new Map()).set(stored, id);
      return stored;
    });
  }

  #toWire(command: TransportCommand): TransportCommand {
    const wireIds = this.#wireIds;
    return wireIds ? replaced(command, ID_KEYS, (id) => wireIds.get(id) ?? id) : command;
  }

  #note(event: TransportEvent): void {
    if (event.type === 'transport.ready') this.#ready = event;
    else if (event.type === 'transport.resumable') this.#resume = event.resume ?? null;
    else if (event.type === 'transport.closed') this.#lost = event;
    else if (event.type === 'session.configured' || event.type === 'session.refused')
      this.#answered += 1;
  }
}

function withTexts(event: TransportEvent): TransportEvent {
  // Two pieces of a text may hold a half each of one character; the final one is whole.
  if ('final' in event && !event.final) return event;
  return replaced(event, TEXT_KEYS, storableText);
}

/** The value with these of its texts replaced; itself where they stay what they are. */
function replaced<T extends object>(
  value: T,
  keys: readonly string[],
  replace: (text: string) => string,
): T {
  let copy: T | null = null;
  for (const key of keys) {
    const text = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof text !== 'string') continue;
    const by = replace(text);
    if (by !== text) copy = { ...(copy ?? value), [key]: by };
  }
  return copy ?? value;
}
