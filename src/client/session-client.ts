// A session at a client: its state, its events and the user's commands, over a connection that reconnects
// automatically.
//
//   connecting ─▶ open ──lost──▶ waiting ─▶ connecting …        closed: by `close`, or refused by the server
//
// Owns:     the client's copy of the session's state, the connection and its back-off, and commands without a receipt.
// Does not: show a change before the server has confirmed it, or handle audio (microphone.ts, speaker.ts).
//
// Invariants
//   SESSION-CLIENT-1. The state contains each change once, in order. If a frame is missed, the server sends the whole
//       state.
//   SESSION-CLIENT-2. A command is executed at most once, over any number of connections. Its promise settles once,
//       with the receipt or with the reason why no receipt arrived.
//   SESSION-CLIENT-3. After a restart, the server may not know whether it has executed a command. In that case, user
//       messages and messages to subagents are not sent again (`FATE_UNKNOWN`). All other commands are sent again,
//       because executing them twice has the same effect as executing them once.
//   SESSION-CLIENT-4. The client drops a connection if the server is silent for longer than the announced interval.
//   SESSION-CLIENT-6. Once a WebSocket has worked, the client uses a stream only until the next WebSocket is open,
//       because only a WebSocket carries audio.
//   SESSION-CLIENT-5. A listener may call any method. If a listener closes the client, the client stays closed and has
//       no open line.

import { nodeEnvironment } from '../adapters/node/environment.ts';
import {
  emptySessionState,
  KEPT_VIEWS,
  type AnswerReceipt,
  type SessionEvent,
  type SessionState,
} from '../actors/contracts/session-views.ts';
import type { BudgetLimits } from '../actors/contracts/config.ts';
import type { ClientAnswer, SessionCommand } from '../actors/contracts/session-command.ts';
import type { MessageSent, RaiseResult, SendRequest } from '../actors/contracts/service-types.ts';
import type { Environment } from '../actors/ports/environment.ts';
import {
  CapacityError,
  ConfigurationError,
  messageOf,
  OffstageError,
  ProtocolError,
} from '../values/errors.ts';
import { checkOptions, oneOf, optional, shown, type OptionChecks } from '../values/plain-checks.ts';
import {
  addressOf,
  mayDetour,
  openSocketLine,
  noStatus,
  openStreamLine,
  type ClientStatus,
  type Line,
  type LineEvents,
  type LineTarget,
  type SocketClass,
  type VoiceLine,
} from './line.ts';
import { callHandlers, type CallHandler } from './call-handlers.ts';
import {
  MAX_TEXT_CHARS,
  PROTOCOL_VERSION,
  readClientFrame,
  readServerFrame,
  type CallCommand,
  type CallFrame,
  type CommandFrame,
  type HelloFrame,
  type Position,
  type ServerFrame,
} from './protocol.ts';
import { applySessionEvent, eventOfPatch } from './session-state.ts';
import { Microphone } from './microphone.ts';
import { screen } from './screen.ts';
import { Speaker } from './speaker.ts';
import { defaultWorkletUrl } from './web-audio.ts';
import { Emitter, selectionOf, Value, type Watchable, type WatchableValue } from './watchable.ts';

/** The options of `connect`. */
export interface ConnectOptions {
  /** The URL of the `serve` handler; in a page, it may be a path. */
  readonly url: string | URL;
  /**
   * The token for `authorize` on the server, such as `location.hash.slice(1)`. A function is called again for each
   * connection. An empty string means that there is no token. @defaultValue none
   */
  readonly token?: string | (() => string | Promise<string>);
  /** The requested session; `authorize` decides whether to grant it. @defaultValue none */
  readonly session?: string;
  /**
   * `stream` uses server-sent events and POST, for text only. `auto` falls back to `stream` if no WebSocket can be
   * opened.
   * @defaultValue 'auto'
   */
  readonly transport?: 'auto' | 'websocket' | 'stream';
  /** @defaultValue the global `WebSocket` */
  readonly WebSocket?: SocketClass;
  /** @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * The URL of the audio worklet (`offstage/client/worklet.js`), for bundlers that do not find it.
   * @defaultValue the file next to this module
   */
  readonly workletUrl?: string | URL;
  /** Time and randomness. @defaultValue the host's */
  readonly environment?: Environment;
  /**
   * Called with errors that listeners throw. If `onError` itself throws, the error is rethrown in a separate task.
   * @defaultValue such errors are rethrown in a separate task
   */
  readonly onError?: (error: unknown) => void;
}

const sendChecks: OptionChecks<{ readonly traceparent?: string }> = {
  traceparent: optional((value) =>
    typeof value === 'string' && value !== '' && value.length <= 512 ? null : 'expected a text',
  ),
};

const optionChecks: OptionChecks<ConnectOptions> = {
  url: (value) =>
    (typeof value === 'string' && value !== '') || value instanceof URL
      ? null
      : 'expected an address',
  token: optional((value) =>
    typeof value === 'function' || typeof value === 'string'
      ? null
      : 'expected a text or a function',
  ),
  session: optional((value) =>
    typeof value === 'string' && value !== '' && value.length <= 200 ? null : 'expected an id',
  ),
  transport: optional(oneOf('auto', 'websocket', 'stream')),
  WebSocket: optional(aFunction),
  fetch: optional(aFunction),
  workletUrl: optional((value) =>
    typeof value === 'string' || value instanceof URL ? null : 'expected an address',
  ),
  environment: optional((value) => {
    const parts = (value ?? {}) as Readonly<
      Record<string, Readonly<Record<string, unknown>> | null>
    >;
    const has = (part: string, method: string): boolean =>
      typeof parts[part]?.[method] === 'function';
    return has('clock', 'now') &&
      has('scheduler', 'schedule') &&
      has('ids', 'next') &&
      has('random', 'next')
      ? null
      : 'expected an environment';
  }),
  onError: optional(aFunction),
};

/** Globals that a page or a worker has and Node.js lacks. */
const host = globalThis as {
  addEventListener?(type: 'online', listener: () => void): void;
  removeEventListener?(type: 'online', listener: () => void): void;
};

function aFunction(value: unknown): string | null {
  return typeof value === 'function' ? null : 'expected a function';
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 5_000;
const LONGEST_PROBE_MS = 60_000;
/** The maximum time from the start of an attempt to the first frame. */
const WELCOME_TIMEOUT_MS = 10_000;
/** The number of announced heartbeat intervals that the client waits before it drops the connection. */
const PATIENCE = 2.5;
/** The maximum number of commands that are waiting for a receipt. */
const MAX_COMMANDS = 100;
/** After this many failed attempts at the URL in a `bye` frame, the client tries the first URL again. */
const MAX_DETOUR_FAILURES = 2;

interface PendingCommand {
  readonly frame: CommandFrame | CallFrame;
  /**
   * The id of the server's record of this client when the command was sent; null if the command has not been sent yet.
   */
  sentTo: string | null;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A snapshot of the store, in the same form as a `session.store` snapshot. */
export interface ClientSnapshot {
  /** Always `active`, as in a running session's snapshot. The client's `status` describes the connection. */
  readonly status: 'active';
  /** The session's state as last received from the server. */
  readonly context: SessionState;
}

/** A client's copy of a session's store, with the read methods of `session.store`. */
export interface ClientStore extends Watchable<ClientSnapshot> {
  /** Returns the same object until the state changes. */
  getSnapshot(): ClientSnapshot;
  /** Same as `getSnapshot`. */
  get(): ClientSnapshot;
  /** Selects a part of the state. Listeners are called when `isSame` returns false. @defaultValue Object.is */
  select<T>(
    selector: (context: SessionState) => T,
    isSame?: (before: T, after: T) => boolean,
  ): WatchableValue<T>;
}

/** A session at a client: its state, its events and its commands, over a connection that reconnects automatically. */
export class SessionClient {
  readonly #options: ConnectOptions;
  readonly #environment: Environment;
  readonly #url: URL;
  readonly #client: string;
  readonly #store: Value<ClientSnapshot>;
  readonly #events: Emitter<SessionEvent>;
  readonly #status: Value<ClientStatus>;
  readonly #answered: Value<ReadonlyMap<string, number>>;
  readonly #opened: Emitter<void>;
  readonly #frames: Emitter<ServerFrame>;
  readonly #sound: Emitter<Uint8Array>;
  readonly #wasLost: Emitter<void>;
  readonly #commands = new Map<number, PendingCommand>();
  #lastId = 0;
  #line: Line | null = null;
  #kind: Line['kind'];
  #position: Position | null = null;
  #memory = '';
  #isWelcome = false;
  /** Whether the server has responded on this connection. */
  #wasAnswered = false;
  /** Whether the client has missed a frame and is waiting for the complete state. */
  #isBehind = false;
  #failures = 0;
  #detour: { readonly url: URL; failures: number } | null = null;
  #aliveMs = WELCOME_TIMEOUT_MS;
  /** Whether the server sends no heartbeats, so that the client has to send `ping`. */
  #isSilent = false;
  #heardAt = 0;
  #clockOffsetMs = 0;
  #cancelTimer: () => void = () => undefined;
  #openedAt = 0;
  #hadSocket = false;
  /** A WebSocket that may replace the stream. */
  #probe: Line | null = null;
  #cancelProbe: () => void = () => undefined;
  #unwatch: () => void = () => undefined;
  /** Counts the attempts, so that callbacks of an earlier attempt are ignored. */
  #attempt = 0;

  constructor(options: ConnectOptions) {
    const checked = checkOptions('connect(options)', optionChecks, options);
    this.#options = checked;
    this.#environment = checked.environment ?? nodeEnvironment();
    this.#url = addressOf(checked.url);
    this.#client = this.#environment.ids.next('c') + this.#environment.ids.next('');
    this.#kind = checked.transport === 'stream' ? 'stream' : 'websocket';
    const threw = (error: unknown): void => this.#threw(error);
    this.#store = new Value<ClientSnapshot>(snapshotOf(emptySessionState), threw);
    const get = (): ClientSnapshot => this.#store.get();
    this.store = {
      get,
      getSnapshot: get,
      subscribe: (listener) => this.#store.subscribe(listener),
      select: (selector, isSame = Object.is) =>
        selectionOf(this.#store, ({ context }) => selector(context), isSame),
    };
    this.#events = new Emitter(threw);
    this.#opened = new Emitter(threw);
    this.#frames = new Emitter(threw);
    this.#sound = new Emitter(threw);
    this.#wasLost = new Emitter(threw);
    this.#answered = new Value<ReadonlyMap<string, number>>(new Map(), threw);
    this.#status = new Value<ClientStatus>(noStatus, threw);
    const line: VoiceLine = {
      notice: (frame) => this.#line?.send([frame]),
      sendSound: (packet, isKept) => this.#line?.sendSound(packet, isKept) ?? false,
      onOpen: this.#opened,
      onFrame: this.#frames,
      onSound: this.#sound,
      onLost: this.#wasLost,
      ownsVoice: () => this.#status.get().ownsVoice,
      threw,
    };
    const command = (call: CallCommand): Promise<unknown> => this.#command(call);
    this.handle = callHandlers({ frames: this.#frames, status: this.#status, command, threw });
    const workletUrl = (): string | URL => checked.workletUrl ?? defaultWorkletUrl();
    this.microphone = new Microphone(line, workletUrl);
    this.speaker = new Speaker(line, this.#environment, workletUrl);
    // The network is available again, so the client reconnects immediately.
    host.addEventListener?.('online', this.#retryNow);
    // Browsers delay or stop timers in a hidden page.
    this.#unwatch = screen.onVisible(this.#retryNow);
    this.#connect();
  }

  /** The session's state, as in `session.store`, kept in sync with the server. */
  readonly store: ClientStore;

  /** The events that the server shares with this client. If an event was missed, its change appears only in `store`. */
  get events(): Watchable<SessionEvent> {
    return this.#events;
  }

  /** The connection to the server. */
  get status(): WatchableValue<ClientStatus> {
    return this.#status;
  }

  /**
   * The ids of the questions that this client answered most recently, each with the server's time of the answer. A page
   * can use this list to show an answer in the transcript, which does not contain the answer's text.
   */
  get answered(): WatchableValue<ReadonlyMap<string, number>> {
    return this.#answered;
  }

  /** The user's microphone, whose audio the server receives while the speaker is started. */
  readonly microphone: Microphone;

  /** The lead agent's voice. */
  readonly speaker: Speaker;

  /** Returns the server's time, in milliseconds since 1970. `dueAt` and `at` use the same clock. */
  serverNow(): number {
    return this.#environment.clock.now() + this.#clockOffsetMs;
  }

  /**
   * Sends a message that the user typed. Resolves once the session has accepted the message. `traceparent`: the page's
   * W3C trace context; the server continues this trace.
   * @throws {OffstageError} the session's refusal; `FATE_UNKNOWN` if the server has restarted in the meantime;
   *   {CapacityError} `TOO_MANY_COMMANDS`; {ConfigurationError} `CLIENT_CLOSED`, `INVALID_ARGUMENT` (rejects).
   */
  async send(text: string, options: { readonly traceparent?: string } = {}): Promise<void> {
    const { traceparent } = checkOptions('send(text, options)', sendChecks, options);
    await this.#command({ type: 'send', text, ...(traceparent !== undefined && { traceparent }) });
  }

  /**
   * Answers a question. Resolves with the receipt. The first valid answer counts, no matter which client gives it.
   * @throws {OffstageError} like `send` (rejects)
   */
  async answer(requestId: string, answer: ClientAnswer): Promise<AnswerReceipt> {
    const receipt = (await this.#command({ type: 'answer', requestId, answer })) as AnswerReceipt;
    if (receipt.accepted) {
      const latest = [...this.#answered.get()].slice(1 - KEPT_VIEWS.questions);
      this.#answered.set(new Map(latest).set(requestId, this.serverNow()));
    }
    return receipt;
  }

  /**
   * Cancels a subagent. Resolves to false if the subagent had already ended.
   * @throws {OffstageError} like `send` (rejects)
   */
  async cancel(subagentId: string, reason?: string): Promise<boolean> {
    return Boolean(
      await this.#command({ type: 'cancel', subagentId, ...(reason !== undefined && { reason }) }),
    );
  }

  /**
   * Sends a message to a subagent. Resolves with the outcome of the message. `mode` determines when the subagent reads
   * the message, as in `session.subagents.send`; default: 'steer'.
   * @throws {OffstageError} like `send` (rejects)
   */
  async message(
    subagentId: string,
    text: string,
    mode?: NonNullable<SendRequest['mode']>,
  ): Promise<MessageSent> {
    return (await this.#command({
      type: 'message',
      subagentId,
      text,
      ...(mode !== undefined && { mode }),
    })) as MessageSent;
  }

  /**
   * Raises a subagent's budget limits to new totals, like `session.subagents.raiseBudget`. Null stands for the
   * session's budget. Resolves with the new budget, or with the reason why it was not raised. Requires the role
   * `operator`.
   * @throws {OffstageError} like `send`, and `NOT_ALLOWED` (rejects)
   */
  async raiseBudget(subagentId: string | null, limits: BudgetLimits): Promise<RaiseResult> {
    return (await this.#command({ type: 'raise', subagentId, limits })) as RaiseResult;
  }

  /**
   * Dismisses a result or notice. Callers may ignore the promise.
   * @throws {OffstageError} like `send` (rejects)
   */
  dismiss(deliveryId: string): Promise<void> {
    return handled(this.#command({ type: 'dismiss', deliveryId }));
  }

  /**
   * Reports that the user has seen a result or notice, so that the session does not need to speak it. Callers may
   * ignore the promise.
   * @throws {OffstageError} like `send` (rejects)
   */
  shown(deliveryId: string): Promise<void> {
    return handled(this.#command({ type: 'shown', deliveryId }));
  }

  /**
   * Reports that the screen shows a question, so that the session accepts its buttons from now on. Callers may ignore
   * the promise.
   * @throws {OffstageError} like `send` (rejects)
   */
  questionShown(requestId: string): Promise<void> {
    return handled(this.#command({ type: 'question.shown', requestId }));
  }

  /**
   * Registers the handler for a tool with `runsAt: 'client'`. The handler's result is sent to the model. `signal`
   * aborts when the result is no longer needed. Returns a function that removes the handler.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  readonly handle: (name: string, handler: CallHandler) => () => void;

  /** If the status is `waiting`, connects now instead of at `status.retryAt`. Does nothing in any other state. */
  reconnect(): void {
    if (this.#status.get().state === 'waiting') this.#connect();
  }

  /** Ends the connection. Rejects the commands that have no receipt yet. Safe to call twice. */
  close(): void {
    this.#end({ code: 'CLIENT_CLOSED', message: 'The client was closed' });
  }

  readonly #retryNow = (): void => {
    if (screen.isVisible()) this.reconnect();
  };

  #command(command: SessionCommand | CallCommand): Promise<unknown> {
    const frame = { ...command, id: this.#lastId + 1 } as PendingCommand['frame'];
    const checked = readClientFrame(frame);
    if (typeof checked === 'string')
      return Promise.reject(
        new ConfigurationError(
          'INVALID_ARGUMENT',
          `client.${frame.type}: ${checked}, got ${shown(command)} (at most ${MAX_TEXT_CHARS} characters of text)`,
        ),
      );
    const { state, reason } = this.#status.get();
    if (state === 'closed') return Promise.reject(closedError(reason));
    if (this.#commands.size >= MAX_COMMANDS)
      return Promise.reject(
        new CapacityError(
          'TOO_MANY_COMMANDS',
          `Expected at most ${MAX_COMMANDS} commands without a receipt; the connection is ${state}`,
        ),
      );
    this.#lastId = frame.id;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const pending: PendingCommand = { frame, sentTo: null, resolve, reject };
    this.#commands.set(frame.id, pending);
    if (this.#isWelcome) this.#sendCommands([pending]);
    return promise;
  }

  #sendCommands(commands: readonly PendingCommand[]): void {
    for (const command of commands) command.sentTo = this.#memory;
    if (commands.length > 0) this.#line?.send(commands.map(({ frame }) => frame));
  }

  /** Drops the current line. Returns the number of the new attempt. */
  #begin(): number {
    this.#drop();
    this.#isWelcome = false;
    this.#isBehind = false;
    this.#wasAnswered = false;
    this.#watch(WELCOME_TIMEOUT_MS);
    return this.#attempt;
  }

  #connect(): void {
    const attempt = this.#begin();
    this.#show({ state: 'connecting', retryAt: null, hasVoice: false, ownsVoice: false });
    // SESSION-CLIENT-5
    if (attempt !== this.#attempt) return;
    const events = this.#eventsOf(() => attempt === this.#attempt);
    void this.#target().then(
      (target) => {
        if (attempt !== this.#attempt) return;
        try {
          this.#line = this.#open(target, events);
        } catch (error) {
          // This host has no WebSocket, or the WebSocket constructor rejects the URL.
          this.#notConnected(error);
        }
      },
      (error: unknown) => {
        if (attempt === this.#attempt) this.#notConnected(error);
      },
    );
  }

  #eventsOf(isCurrent: () => boolean): LineEvents {
    return {
      frame: (value) => {
        if (isCurrent()) this.#received(value);
      },
      sound: (bytes) => {
        if (!isCurrent()) return;
        this.#heardAt = this.#environment.clock.now();
        this.#sound.emit(bytes);
      },
      closed: (reason, isFinal) => {
        if (!isCurrent()) return;
        if (reason && isFinal) this.#end(reason);
        else this.#lost(reason ? { reason } : {});
      },
    };
  }

  /** Opens a WebSocket in parallel and replaces the stream once the WebSocket is open (SESSION-CLIENT-6). */
  #probeLater(delayMs: number): void {
    const stream = this.#line;
    const isWaiting = (): boolean => stream !== null && this.#line === stream;
    const again = (): void => {
      if (isWaiting()) this.#probeLater(Math.min(LONGEST_PROBE_MS, 2 * delayMs));
    };
    const probe = async (): Promise<void> => {
      const target = await this.#target();
      if (!isWaiting()) return;
      let attempt: number | null = null;
      const events = this.#eventsOf(() => attempt === this.#attempt);
      const socket = this.#openSocket(target, {
        ...events,
        opened: () => {
          this.#probe = null;
          attempt = this.#begin();
          this.#line = socket;
          this.#kind = 'websocket';
        },
        closed: (reason, isFinal) => {
          if (attempt === null) again();
          else events.closed(reason, isFinal);
        },
      });
      this.#probe = socket;
    };
    const { scheduler } = this.#environment;
    this.#cancelProbe = scheduler.schedule(() => void probe().catch(again), delayMs);
  }

  async #target(): Promise<LineTarget> {
    const { token = '', session } = this.#options;
    const url = new URL(this.#detour?.url ?? this.#url);
    if (session !== undefined) url.searchParams.set('session', session);
    const hello: HelloFrame = {
      type: 'hello',
      v: PROTOCOL_VERSION,
      client: this.#client,
      ...(this.#position && { after: this.#position }),
    };
    return { url, hello, token: (typeof token === 'function' ? await token() : token) || null };
  }

  #open(target: LineTarget, events: LineEvents): Line {
    if (this.#kind === 'stream')
      return openStreamLine(
        this.#options.fetch ?? globalThis.fetch.bind(globalThis),
        target,
        events,
      );
    return this.#openSocket(target, events);
  }

  #openSocket(target: LineTarget, events: LineEvents): Line {
    const Socket = this.#options.WebSocket ?? (globalThis.WebSocket as SocketClass | undefined);
    if (!Socket) throw new ConfigurationError('NO_WEB_SOCKET', 'This host has no `WebSocket`');
    return openSocketLine(Socket, target, events);
  }

  /** Drops the line after the server has been silent for `timeoutMs` (SESSION-CLIENT-4). */
  #watch(timeoutMs: number): void {
    const { clock, scheduler } = this.#environment;
    this.#heardAt = clock.now();
    const look = (): void => {
      const leftMs = this.#heardAt + timeoutMs - clock.now();
      if (leftMs <= 0) this.#lost();
      else this.#cancelTimer = scheduler.schedule(look, leftMs);
    };
    this.#cancelTimer();
    this.#cancelTimer = scheduler.schedule(look, timeoutMs);
  }

  /**
   * Sends a `ping` to a server that sends no heartbeats, and drops the line if there is no response. The time limit
   * starts at the `ping`, because browsers delay timers in hidden pages.
   */
  #ask(): void {
    const { clock, scheduler } = this.#environment;
    this.#heardAt = clock.now();
    let askedAt: number | null = null;
    const look = (): void => {
      const now = clock.now();
      if (askedAt !== null && this.#heardAt < askedAt) return this.#lost();
      askedAt = null;
      let nextMs = this.#heardAt + this.#aliveMs - now;
      if (nextMs <= 0) {
        askedAt = now;
        nextMs = this.#aliveMs * (PATIENCE - 1);
        this.#line?.send([{ type: 'ping' }]);
      }
      this.#cancelTimer = scheduler.schedule(look, nextMs);
    };
    this.#cancelTimer();
    this.#cancelTimer = scheduler.schedule(look, this.#aliveMs);
  }

  #received(value: unknown): void {
    this.#heardAt = this.#environment.clock.now();
    const frame = readServerFrame(value);
    if (frame === null) return;
    if (typeof frame === 'string') {
      this.#threw(
        new ProtocolError('INVALID_FRAME', `The server sent no frame: ${frame}`, { raw: value }),
      );
      // The next connection requests the whole state.
      this.#position = null;
      this.#lost();
      return;
    }
    const attempt = this.#attempt;
    switch (frame.type) {
      case 'welcome':
        if (frame.v !== PROTOCOL_VERSION) {
          const message = `Expected version ${PROTOCOL_VERSION} of the protocol, got ${frame.v}`;
          this.#end({ code: 'PROTOCOL_VERSION', message });
          break;
        }
        this.#aliveMs = frame.aliveMs;
        this.#isSilent = frame.isSilent ?? false;
        this.#isBehind = false;
        this.#position = { epoch: frame.epoch, seq: frame.seq };
        this.#setState(frame.state);
        // SESSION-CLIENT-5
        if (attempt !== this.#attempt) return;
        this.#welcomed(frame, {
          user: frame.user,
          role: frame.role,
          sessionId: frame.sessionId,
          hasVoice: frame.hasVoice,
        });
        break;
      case 'resumed':
        this.#welcomed(frame, { hasVoice: frame.hasVoice });
        break;
      case 'events':
        this.#setClock(frame.now);
        this.#applyEvents(frame);
        break;
      case 'alive':
        this.#setClock(frame.now);
        if (this.#position && frame.seq !== this.#position.seq) this.#resync();
        break;
      case 'receipt':
        this.#settle(frame);
        break;
      case 'voice':
        this.#show({ ownsVoice: frame.own });
        break;
      case 'bye':
        this.#dismissed(frame);
        break;
      case 'audio.item':
      case 'calls':
      case 'pong':
      case 'refused':
        break;
    }
    if (attempt === this.#attempt) this.#frames.emit(frame);
  }

  #welcomed(
    { now, memory }: { readonly now: number; readonly memory: string },
    change: Partial<ClientStatus>,
  ): void {
    this.#setClock(now);
    const opened = {
      ...change,
      state: 'open',
      transport: this.#line?.kind ?? null,
      reason: null,
    } as const;
    if (this.#isWelcome) {
      // All receipts of the earlier record have arrived, and the server has added the commands without a receipt to the
      // new record.
      if (memory !== this.#memory)
        for (const command of this.#commands.values())
          if (command.sentTo === this.#memory) command.sentTo = memory;
      this.#memory = memory;
      this.#show(opened);
      return;
    }
    this.#isWelcome = true;
    this.#wasAnswered = true;
    this.#openedAt = this.#environment.clock.now();
    this.#hadSocket ||= this.#kind === 'websocket';
    if (this.#hadSocket && this.#kind === 'stream') this.#probeLater(LONGEST_RETRY_MS);
    if (this.#isSilent) this.#ask();
    else this.#watch(this.#aliveMs * PATIENCE);
    this.#memory = memory;
    // SESSION-CLIENT-3
    const unknown = ({ sentTo }: PendingCommand): boolean => sentTo !== null && sentTo !== memory;
    for (const { frame, reject } of [...this.#commands.values()].filter(unknown))
      if (frame.type === 'send' || frame.type === 'message') {
        this.#commands.delete(frame.id);
        reject(
          new OffstageError(
            'FATE_UNKNOWN',
            'The server restarted before it sent a receipt: look at the transcript before you send it again',
          ),
        );
      }
    this.#sendCommands([...this.#commands.values()]);
    const attempt = this.#attempt;
    this.#show(opened);
    // SESSION-CLIENT-5
    if (attempt === this.#attempt) this.#opened.emit();
  }

  #applyEvents({ seq, events }: Extract<ServerFrame, { type: 'events' }>): void {
    if (this.#isBehind || !this.#position) return;
    if (seq <= this.#position.seq) return;
    if (seq !== this.#position.seq + 1) return this.#resync();
    const before = this.#store.get().context;
    let state: SessionState = before;
    const applied: SessionEvent[] = [];
    for (const wire of events) {
      const event = wire.type === 'patch' ? eventOfPatch(state, wire) : wire;
      if (!event) return this.#resync();
      state = applySessionEvent(state, event);
      applied.push(event);
    }
    this.#position = { epoch: this.#position.epoch, seq };
    if (state !== before) this.#setState(state);
    for (const event of applied) this.#events.emit(event);
  }

  /** Requests the whole state (SESSION-CLIENT-1). */
  #resync(): void {
    if (this.#isBehind) return;
    this.#isBehind = true;
    this.#line?.send([{ type: 'resync' }]);
  }

  #settle(frame: Extract<ServerFrame, { type: 'receipt' }>): void {
    const command = this.#commands.get(frame.id);
    if (!command) return;
    this.#commands.delete(frame.id);
    if (frame.ok) command.resolve(frame.value);
    else command.reject(new OffstageError(frame.code, frame.message));
  }

  #dismissed({ code, message, retry, url }: Extract<ServerFrame, { type: 'bye' }>): void {
    const reason = { code, message };
    if (!retry) return this.#end(reason);
    const detour = url === undefined ? null : URL.parse(url, this.#url.href);
    if (detour && !mayDetour(detour, this.#url)) {
      // The token may be sent only to a URL that is at least as secure as the original one.
      const told = `The server sends this client to ${detour.origin}, which is less safe than ${this.#url.origin}`;
      return this.#end({ code: 'DETOUR_REFUSED', message: told });
    }
    if (detour) this.#detour = { url: detour, failures: 0 };
    this.#wasAnswered = true;
    // The delay grows with each failure. This also slows down a client that two servers keep redirecting to each other.
    this.#lost({ reason, atOnce: detour !== null && this.#failures === 0 });
  }

  #notConnected(error: unknown): void {
    this.#lost({ reason: { code: 'CONNECT_FAILED', message: messageOf(error) } });
  }

  /** Drops the line and schedules another attempt; the delay doubles with each failure. */
  #lost({
    reason,
    atOnce = false,
  }: { readonly reason?: ClientStatus['reason']; readonly atOnce?: boolean } = {}): void {
    this.#drop();
    // Some networks let through only WebSockets or only streams, so the client alternates between them.
    if (!this.#wasAnswered && (this.#options.transport ?? 'auto') === 'auto')
      this.#kind = this.#kind === 'websocket' ? 'stream' : 'websocket';
    const { clock, random, scheduler } = this.#environment;
    // A connection that closes soon after it opened counts as a failure.
    if (this.#isWelcome && clock.now() - this.#openedAt >= LONGEST_RETRY_MS) this.#failures = 0;
    if (this.#detour && !this.#isWelcome && ++this.#detour.failures > MAX_DETOUR_FAILURES)
      this.#detour = null;
    this.#isWelcome = false;
    this.#isBehind = false;
    const patienceMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures);
    const delayMs = atOnce ? 0 : patienceMs * (0.75 + random.next() / 2);
    this.#failures = Math.min(this.#failures + 1, 16);
    // The server allows only a few streams per user, so a hidden page leaves them to visible pages.
    const isHidden = reason?.code === 'TOO_MANY_STREAMS' && !screen.isVisible();
    if (!isHidden) this.#cancelTimer = scheduler.schedule(() => this.#connect(), delayMs);
    this.#show({
      ...(reason !== undefined && { reason }),
      state: 'waiting',
      transport: null,
      retryAt: isHidden ? null : clock.now() + delayMs,
      hasVoice: false,
      ownsVoice: false,
    });
    this.#wasLost.emit();
  }

  #drop(): void {
    this.#attempt += 1;
    this.#cancelTimer();
    this.#cancelProbe();
    this.#probe?.close();
    this.#probe = null;
    this.#line?.close();
    this.#line = null;
  }

  #end(reason: { readonly code: string; readonly message: string }): void {
    if (this.#status.get().state === 'closed') return;
    this.#drop();
    host.removeEventListener?.('online', this.#retryNow);
    this.#unwatch();
    this.#show({
      state: 'closed',
      transport: null,
      retryAt: null,
      reason,
      hasVoice: false,
      ownsVoice: false,
    });
    this.microphone.stop();
    this.speaker.stop();
    const commands = [...this.#commands.values()];
    this.#commands.clear();
    for (const { reject } of commands) reject(closedError(reason));
  }

  #setState(state: SessionState): void {
    this.#store.set(snapshotOf(state));
  }

  #setClock(now: number): void {
    this.#clockOffsetMs = now - this.#environment.clock.now();
  }

  #show(change: Partial<ClientStatus>): void {
    this.#status.set({ ...this.#status.get(), ...change });
  }

  #threw(error: unknown): void {
    const { onError = rethrow } = this.#options;
    try {
      onError(error);
    } catch (thrown) {
      this.#environment.scheduler.schedule(() => rethrow(thrown), 0);
    }
  }
}

function rethrow(error: unknown): never {
  throw error;
}

function snapshotOf(context: SessionState): ClientSnapshot {
  return { status: 'active', context };
}

function closedError(reason: ClientStatus['reason']): ConfigurationError {
  const { code = 'CLIENT_CLOSED', message = 'The client was closed' } = reason ?? {};
  return new ConfigurationError('CLIENT_CLOSED', `The connection is closed (${code}): ${message}`);
}

/** Handles the rejection here, so that callers can ignore the promise. */
function handled(promise: Promise<unknown>): Promise<void> {
  const result = promise.then(() => undefined);
  result.catch(() => undefined);
  return result;
}

/**
 * Connects to a session that `serve` provides. The client reconnects automatically until `close` is called or the
 * server refuses it (see `status`).
 * @throws {ConfigurationError} `INVALID_OPTION`, `INVALID_URL`
 */
export function connect(options: ConnectOptions): SessionClient {
  return new SessionClient(options);
}
