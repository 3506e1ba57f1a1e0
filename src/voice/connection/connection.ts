// One connection to the voice model: how it started, the state that it has reported, and the part of the conversation
// that its model has.
//
// Owns:     the connection's readiness, configuration and resume value, and the history that its model already had or
//           has received.
// Does not: determine whether it is in use or where an earlier connection ended (connection manager).
//
// A fault in an adapter does not end the process. Errors in event handlers are caught, and an error in a stream or in
// `connect` ends the connection.
//
// Invariant
//   CONNECTION-1. If a journal cannot store a provider's id, the session uses a different id (storable.ts), which is
//       translated back in commands.

import { EMPTY, of } from 'rxjs';
import { callSafely, type Host } from '../../actors/runtime/host.ts';
import { storableId, storableText } from '../../values/storable.ts';
import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError, messageOf, ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from './transport.ts';

export type ConnectionClosed = Extract<TransportEvent, { type: 'transport.closed' }>;
type Ready = Extract<TransportEvent, { type: 'transport.ready' }>;

/** The properties of events, commands and frames that contain an id from the provider. */
const ID_KEYS = [
  'utteranceId',
  'itemId',
  'afterItemId',
  'responseId',
  'callId',
  'delegationId',
] as const;
/** The properties of events that contain text. */
const TEXT_KEYS = ['text', 'name', 'arguments', 'message', 'reason'] as const;

/** The ids of the messages that a model has. */
export type KnownMessages = ReadonlySet<string>;

/** The initial conversation of a new connection. */
export interface Beginning {
  /** Returns the conversation as transport commands. */
  history(): readonly TransportCommand[];
  readonly notes: NoteWriter | undefined;
  /** The state in which the resumed connection ended; null if this connection does not resume another one. */
  readonly resumed: { readonly resume: unknown; readonly known: KnownMessages } | null;
}

export class Connection {
  /** When the connection was opened, in milliseconds since 1970. */
  readonly since: number;
  /** The resume value with which this connection was opened; undefined if there was none. */
  readonly resumedFrom: unknown;
  readonly #host: Host;
  readonly #connection: TransportConnection;
  readonly #beginning: Beginning;
  /** The messages that the transport has requested as history and sends with its first message. */
  #taken: KnownMessages = new Set();
  #configuration: string;
  #configures = 0;
  #answered = 0;
  #ready: Ready | null = null;
  #resume: unknown = null;
  #lost: ConnectionClosed | null = null;
  /** The replaced provider ids, by the session's ids; null until an id is replaced (CONNECTION-1). */
  #wireIds: Map<string, string> | null = null;

  constructor(
    transport: Transport,
    host: Host,
    configuration: TransportConfiguration,
    beginning: Beginning,
  ) {
    const { environment } = host;
    const { notes, resumed } = beginning;
    this.#host = host;
    this.#beginning = beginning;
    this.since = environment.clock.now();
    this.resumedFrom = resumed?.resume;
    this.#configuration = JSON.stringify(configuration);
    const context: TransportContext = {
      environment,
      ...(notes && { notes }),
      ...(resumed && { resume: resumed.resume }),
      history: () => {
        const commands = beginning.history();
        this.#taken = knownMessages(commands);
        return commands;
      },
    };
    try {
      const connection = transport.connect(configuration, context);
      const streams = [connection?.events, connection?.audio];
      if (streams.some((stream) => typeof stream?.subscribe !== 'function'))
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

  /** Whether the connection accepts commands. */
  get isReady(): boolean {
    return this.#ready !== null;
  }

  /** The reason why the connection ended; null while it is open. */
  get lost(): ConnectionClosed | null {
    return this.#lost;
  }

  /** The resume value; null if the connection cannot be resumed. */
  get resume(): unknown {
    return this.#resume;
  }

  /** The number of configurations that were sent on this connection. */
  get configures(): number {
    return this.#configures;
  }

  /** The number of configurations that the server has confirmed or refused. */
  get answered(): number {
    return this.#answered;
  }

  /** Whether the model remembers the resumed connection. */
  get isResumed(): boolean {
    return this.#ready?.resumed === true;
  }

  /** The messages that the model still needs once the connection is ready, oldest first. */
  get pendingCommands(): readonly TransportCommand[] {
    if (!this.#ready) return [];
    const before = this.isResumed ? this.#beginning.resumed?.known : undefined;
    const taken = this.#ready.told ? this.#taken : undefined;
    return this.#beginning.history().filter((command) => {
      const name = nameOf(command);
      return !before?.has(name) && !taken?.has(name);
    });
  }

  /** Subscribes to the connection's audio and to its events, starting with the first event. */
  listen(onEvent: (event: TransportEvent) => void, onAudio: (frame: AudioFrame) => void): void {
    const handle = (event: TransportEvent): void =>
      callSafely(this.#host, 'transport', () => {
        const storable = this.#fromWire(event);
        this.#record(storable);
        onEvent(storable);
      });
    const error = (thrown: unknown): void =>
      handle({ type: 'transport.closed', code: null, reason: messageOf(thrown), retryable: true });
    this.#connection.audio.subscribe({
      next: (frame) => callSafely(this.#host, 'transport', () => onAudio(this.#withIds(frame))),
      error,
    });
    this.#connection.events.subscribe({ next: handle, error });
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

  /** Returns whether `configuration` is the last one that was sent. */
  isConfiguredAs(configuration: TransportConfiguration): boolean {
    return JSON.stringify(configuration) === this.#configuration;
  }

  close(): void {
    callSafely(this.#host, 'transport', () => this.#connection.close());
  }

  /** CONNECTION-1 */
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

  #record(event: TransportEvent): void {
    if (event.type === 'transport.ready') this.#ready = event;
    else if (event.type === 'transport.resumable') this.#resume = event.resume ?? null;
    else if (event.type === 'transport.closed') this.#lost = event;
    else if (event.type === 'session.configured' || event.type === 'session.refused')
      this.#answered += 1;
  }
}

/** The id of a message that a model has. It does not change if the text changes later. */
export const messageName = (itemId: string): string => `message ${itemId}`;

/** A message that is truncated later keeps its id, and a note informs the model of the truncation (model-memory). */
const nameOf = (command: TransportCommand): string =>
  command.type === 'message.add' ? messageName(command.itemId) : JSON.stringify(command);

export const knownMessages = (commands: readonly TransportCommand[]): KnownMessages =>
  new Set(commands.map(nameOf));

/** Represents the connection of a transport whose `connect` threw an error. The connection has already ended. */
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

function withTexts(event: TransportEvent): TransportEvent {
  // A partial text may end in the middle of a character, but the final text does not.
  if ('final' in event && !event.final) return event;
  return replaced(event, TEXT_KEYS, storableText);
}

/** Returns the value with the texts under `keys` replaced; returns the same object if nothing changes. */
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
