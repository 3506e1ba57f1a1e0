// A voice model that the test controls. It records the commands that it receives and says what the test requests. It
// has no wire, unlike the fake servers.

import { Subject } from 'rxjs';
import { SIMULATED_CAPABILITIES } from '../../src/testing/simulate/voice-stage.ts';
import type { AudioFrame } from '../../src/voice/audio/audio-frame.ts';
import type { Voice } from '../../src/voice/speech/voice.ts';
import { spokenLead } from '../../src/voice/spoken-lead.ts';
import type {
  Transport,
  TransportCapabilities,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../src/voice/connection/transport.ts';

const capabilities: TransportCapabilities = {
  ...SIMULATED_CAPABILITIES,
  inputSampleRateHz: 24_000,
  outputSampleRateHz: 24_000,
};

/** The amplitude of the model's audio. */
/** As loud as the model's audio. */
export const SPOKEN_LEVEL = 10_000;

export interface Spoken {
  readonly responseId: string;
  readonly itemId: string;
  readonly end: (status?: 'completed' | 'cancelled' | 'failed') => void;
}

type Of<T extends TransportCommand['type']> = Extract<TransportCommand, { type: T }>;

/** The capabilities of a model that answers speech without a request, cannot forget, and does not schedule results. */
export const BY_ITSELF = {
  responds: 'by_itself',
  truncatesAudio: false,
  deletesItems: false,
} as const satisfies Partial<TransportCapabilities>;

/** The capabilities of a model that only reports that an action is needed, without naming it. */
export const DELEGATES = {
  ...BY_ITSELF,
  utterances: 'inferred',
  toolCalls: 'delegation',
} as const satisfies Partial<TransportCapabilities>;

export class FakeConnection implements TransportConnection {
  readonly events = new Subject<TransportEvent>();
  readonly audio = new Subject<AudioFrame>();
  readonly commands: TransportCommand[] = [];
  readonly heard: AudioFrame[] = [];
  readonly configuration: TransportConfiguration;
  isClosed = false;
  /** The fake answers `session.configure` automatically. */
  autoConfigured = true;
  /** The words that answer `utterance.end`, or null for no answer. */
  saidSoFar: string | null = 'so far';
  /** The number of utterances and items so far, from which the next one gets its name. */
  items = 0;

  /** The state from which the connection resumes. */
  readonly resume: unknown;
  readonly #history: () => readonly TransportCommand[];

  constructor(configuration: TransportConfiguration, context?: TransportContext) {
    this.configuration = configuration;
    this.resume = context?.resume;
    this.#history = () => context?.history?.() ?? [];
  }

  /** The wire sends the conversation together with its first message. */
  takeHistory(): readonly TransportCommand[] {
    return this.#history();
  }

  ready(how: { readonly resumed?: boolean; readonly told?: boolean } = {}): void {
    this.events.next({ type: 'transport.ready', ...how });
  }

  sendAudio(frame: AudioFrame): void {
    this.heard.push(frame);
  }

  send(command: TransportCommand): void {
    this.commands.push(command);
    if (command.type === 'session.configure' && this.autoConfigured)
      void Promise.resolve().then(() => this.events.next({ type: 'session.configured' }));
    if (command.type === 'utterance.end' && this.saidSoFar !== null)
      this.speechEnded(command.utteranceId, this.saidSoFar);
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  of<T extends TransportCommand['type']>(type: T): Of<T>[] {
    return this.commands.filter((command): command is Of<T> => command.type === type);
  }

  /** Returns the requests for which no response has been started. */
  get openRequests(): Of<'response.request'>[] {
    return this.of('response.request').filter(({ responseKey }) => !this.#begun.has(responseKey));
  }

  /** Drops the connection with code 1006. */
  drop(retryable = true, reason = 'lost'): void {
    this.events.next({ type: 'transport.closed', code: 1006, reason, retryable });
    this.events.complete();
  }

  /** Reports one of the user's utterances: start, end, transcript. */
  utterance(text: string, id = `user_${(this.items += 1)}`): string {
    this.speechStarted(id);
    this.speechEnded(id, text);
    return id;
  }

  speechStarted(id: string): void {
    this.events.next({ type: 'utterance.started', utteranceId: id, audioStartMs: 0 });
  }

  speechEnded(id: string, text: string): void {
    this.events.next({ type: 'utterance.ended', utteranceId: id });
    this.events.next({ type: 'utterance.transcribed', utteranceId: id, text, final: true });
  }

  readonly #begun = new Set<string>();

  /** Answers the oldest open request by speaking `text`, with `ms` of generated audio. */
  begin(text: string, ms: number): Spoken {
    const request = this.openRequests[0];
    if (!request) throw new Error('The model was not asked to speak');
    const { responseKey } = request;
    this.#begun.add(responseKey);
    return this.#speak(text, ms, responseKey);
  }

  /** Starts to speak without a request. */
  beginByItself(text: string, ms: number): Spoken {
    return this.#speak(text, ms, null);
  }

  /** Ends the oldest open request without a response. */
  lapse(): void {
    const [request] = this.openRequests;
    if (!request) return;
    const { responseKey } = request;
    this.#begun.add(responseKey);
    const number = (this.items += 1);
    this.events.next({
      type: 'response.ended',
      responseId: `lapsed_${number}`,
      responseKey,
      status: 'cancelled',
      reason: 'lapsed',
      audio: [],
    });
  }

  #speak(text: string, ms: number, responseKey: string | null): Spoken {
    const number = (this.items += 1);
    const responseId = `resp_${number}`;
    const itemId = `item_${number}`;
    this.events.next({ type: 'response.started', responseId, responseKey });
    if (ms > 0)
      this.audio.next({
        samples: new Int16Array((24_000 * ms) / 1000).fill(SPOKEN_LEVEL),
        sampleRateHz: 24_000,
        itemId,
        responseId,
      });
    if (text !== '')
      this.events.next({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
    return {
      responseId,
      itemId,
      end: (status = 'completed') =>
        this.events.next({
          type: 'response.ended',
          responseId,
          responseKey,
          status,
          reason: null,
          audio: ms > 0 ? [{ itemId, durationMs: ms }] : [],
        }),
    };
  }

  /** Speaks a whole message without a request. */
  speakByItself(text: string, ms = 1000): string {
    const { itemId, end } = this.beginByItself(text, ms);
    end();
    return itemId;
  }

  /** Answers the oldest open request with a whole spoken message. */
  speak(text: string, ms = 1000): string {
    const { itemId, end } = this.begin(text, ms);
    end();
    return itemId;
  }

  /** Answers the oldest open request by calling tools. */
  call(...calls: { callId: string; name: string; arguments: string }[]): void {
    const { responseId, end } = this.begin('', 0);
    for (const call of calls) this.events.next({ type: 'tool.called', responseId, ...call });
    end();
  }
}

export class FakeTransport implements Transport {
  readonly name = 'fake';
  readonly lead = spokenLead;
  readonly capabilities: TransportCapabilities;
  readonly connections: FakeConnection[] = [];
  readonly voice?: Voice;
  /** New connections become ready automatically. */
  autoReady = true;

  constructor(changed: Partial<TransportCapabilities> = {}, voice?: Voice) {
    this.capabilities = { ...capabilities, ...changed };
    if (voice) this.voice = voice;
  }

  connect(configuration: TransportConfiguration, context?: TransportContext): FakeConnection {
    const connection = new FakeConnection(configuration, context);
    this.connections.push(connection);
    if (this.autoReady)
      void Promise.resolve().then(() => connection.events.next({ type: 'transport.ready' }));
    return connection;
  }

  /** Returns the connection that the session uses. A candidate to replace it is newer. */
  get inUse(): FakeConnection {
    return this.connections.find(({ isClosed }) => !isClosed) ?? this.current;
  }

  /** Returns the newest connection that the session has not closed. */
  get current(): FakeConnection {
    const connection =
      this.connections.findLast(({ isClosed }) => !isClosed) ?? this.connections.at(-1);
    if (!connection) throw new Error('Nobody has connected');
    return connection;
  }
}
