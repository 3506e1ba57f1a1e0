// One session with an ACP agent: its connection, the current turn and the open requests.
//
// Invariants
//   ACP-SESSION-1. Each request from the agent is answered exactly once. It is answered as cancelled if the turn is
//       cancelled, the agent withdraws the request, or the session is released.
//   ACP-SESSION-2. Updates that arrive between turns or during a replay do not cause events.
//   ACP-SESSION-3. If an agent's output cannot be read, the agent is stopped, and its remaining output is still
//       consumed.
//   ACP-SESSION-4. An invalid response from the agent ends the turn or the start with an error that names the response.
//   ACP-SESSION-5. The first prompt is sent only after the app's options have been set, because an agent whose mode
//       cannot be set might never ask for permission.

import { Readable, Writable } from 'node:stream';
import type * as Sdk from '@agentclientprotocol/sdk';
import type {
  ClientConnection,
  CreateElicitationRequest,
  CreateElicitationResponse,
  McpServer,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
} from '@agentclientprotocol/sdk';
import { propertiesOf } from '../../values/json.ts';
import type {
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
} from '../../actors/ports/relay.ts';
import { messageOf, OffstageError, ProtocolError, TimeoutError } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import type { AgentProcess } from '../agent-process/agent-process.ts';
import { fieldsOf, fillIn } from '../relays/form-fields.ts';
import {
  endOf,
  lastingIn,
  NO_FORM,
  permissionOutcome,
  readAbilities,
  readSessionId,
  readSessionOptions,
  ToolTable,
  type Tokens,
} from './mapping.ts';

interface AcpSessionOptions {
  readonly sdk: typeof Sdk;
  readonly name: string;
  readonly agent: AgentProcess;
  readonly start: RelayStart;
  readonly cwd: string;
  readonly mcpServers: readonly Readonly<Record<string, unknown>>[];
  readonly configOptions: Readonly<Record<string, string | boolean>>;
  readonly startTimeoutMs: number;
  readonly graceMs: number;
  removeFolder(): void;
}

const RESOURCE_NOT_FOUND = -32_002;
const MAX_LINE = 16 * 1024 * 1024;
/** The maximum time to read the output of an agent that has ended. A child process may keep the output open. */
const DRAIN_MS = 1_000;

export class AcpSession implements RelaySession {
  readonly isRunning = false;
  id = '';
  readonly #options: AcpSessionOptions;
  readonly #connection: ClientConnection;
  /** The number of the current turn; null if there is none. */
  #turn: number | null = null;
  #turns = 0;
  #tools = new ToolTable();
  #requests = 0;
  #sums = {
    inputTokens: 0,
    outputTokens: 0,
    cachedReadTokens: 0,
    cachedWriteTokens: 0,
    thoughtTokens: 0,
    cost: 0,
  };
  #isOver = false;
  #isCut = false;
  #cancelGrace: (() => void) | null = null;
  #turnEnded: (() => void) | null = null;
  readonly #open = new Map<string, (answer: RelayAnswer) => void>();

  /** Opens the connection and the session. Ends the process if this fails. */
  static async open(options: AcpSessionOptions): Promise<AcpSession> {
    const { agent, start, startTimeoutMs, graceMs, name } = options;
    const session = new AcpSession(options);
    const { promise: opened, resolve: succeed, reject: stop } = Promise.withResolvers<void>();
    // Opening may still fail after the caller has stopped waiting.
    opened.catch(() => {});
    const abort = (): void => stop(start.signal.reason as Error);
    start.signal.addEventListener('abort', abort, { once: true });
    const cancelTimer = start.scheduler.schedule(
      () => stop(new TimeoutError(`${name} opened no session within ${startTimeoutMs} ms`)),
      startTimeoutMs,
    );
    void agent.exited.then(({ message }) => {
      stop(new OffstageError('RELAY_FAILED', `${name} opened no session: ${message}`));
    });
    try {
      start.signal.throwIfAborted();
      session.#begin().then(succeed, (error: unknown) => {
        // The exit of the process explains the failure better, so wait for it until the time limit.
        if (!session.#connection.signal.aborted) stop(error);
      });
      await opened;
    } catch (error) {
      session.#isOver = true;
      await agent.end(start.scheduler, graceMs);
      throw error;
    } finally {
      cancelTimer();
      start.signal.removeEventListener('abort', abort);
    }
    void session.#untilClosed();
    return session;
  }

  private constructor(options: AcpSessionOptions) {
    this.#options = options;
    const { sdk, agent, start } = options;
    const { client, methods, ndJsonStream } = sdk;
    this.#connection = client({ name: 'offstage' })
      .onNotification(methods.client.session.update, ({ params }) => this.#updated(params))
      .onRequest(methods.client.session.requestPermission, ({ params, signal }) =>
        this.#asksPermission(params, signal),
      )
      .onRequest(methods.client.elicitation.create, ({ params, signal }) =>
        this.#asks(params, signal),
      )
      .connect(
        ndJsonStream(
          Writable.toWeb(agent.stdin),
          lines(agent.stdout, (error) => start.report(error)),
        ),
      );
    void this.#connection.closed.then(() => this.#cut());
  }

  prompt({ text }: RelayPrompt): void {
    if (this.#isOver) return;
    const { methods } = this.#options.sdk;
    this.#turns += 1;
    const turn = this.#turns;
    this.#turn = turn;
    this.#tools = new ToolTable();
    const asked = {
      sessionId: this.id,
      prompt: [{ type: 'text' as const, text }],
      ...this.#meta,
    };
    this.#connection.agent.request(methods.agent.session.prompt, asked).then(
      (response: unknown) => {
        const { usage, ...ended } = endOf(response);
        if (usage && this.#turn === turn) this.#used(usage);
        this.#endTurn(turn, { type: 'turn_ended', ...ended });
      },
      (error: unknown) => {
        // The exit of the process explains the failure better.
        if (this.#connection.signal.aborted) return;
        this.#endTurn(turn, { type: 'turn_ended', reason: 'failed', message: messageOf(error) });
      },
    );
  }

  /** Not part of ACP v1: the relay declares that it does not support steering. */
  steer(): void {}

  answer(requestId: string, answer: RelayAnswer): void {
    const settle = this.#open.get(requestId);
    this.#open.delete(requestId);
    settle?.(answer);
  }

  interrupt(): void {
    if (this.#turn === null || this.#isOver) return;
    this.#cancel();
    const { start, graceMs, agent } = this.#options;
    this.#cancelGrace ??= start.scheduler.schedule(() => agent.signal('SIGKILL'), graceMs);
  }

  async release(why: 'ended' | 'suspended'): Promise<RelayRelease> {
    const { agent, start, graceMs, removeFolder } = this.#options;
    const wasRunning = this.#turn !== null && !this.#isOver;
    this.#isOver = true;
    let isKilled = false;
    if (wasRunning) {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      this.#turnEnded = resolve;
      this.#cancel();
      const cancelTimer = start.scheduler.schedule(() => {
        isKilled = true;
        agent.signal('SIGKILL');
      }, graceMs);
      void agent.exited.then(() => resolve());
      await ended;
      cancelTimer();
    }
    this.#cancelGrace?.();
    if (await agent.end(start.scheduler, graceMs)) isKilled = true;
    this.#connection.close();
    if (why === 'ended') removeFolder();
    if (isKilled) return 'killed';
    return wasRunning ? 'cancelled' : 'idle';
  }

  async #begin(): Promise<void> {
    const { sdk, name, start, cwd } = this.#options;
    const { methods } = sdk;
    const { agent } = this.#connection;
    const { protocolVersion, resumes, loads } = readAbilities(
      name,
      await agent.request(methods.agent.initialize, {
        protocolVersion: 1,
        clientInfo: { name: 'offstage', version: OFFSTAGE_VERSION },
        clientCapabilities: { elicitation: { form: {} } },
      }),
    );
    if (protocolVersion !== 1)
      throw new ProtocolError(
        'RELAY_FAILED',
        `Expected ${name} to speak version 1 of ACP, it speaks version ${protocolVersion}`,
      );
    const mcpServers = [...this.#options.mcpServers] as McpServer[];
    const { resume: sessionId } = start;
    if (sessionId === undefined) {
      const opened = await agent.request(methods.agent.session.new, {
        cwd,
        mcpServers,
        ...this.#meta,
      });
      this.id = readSessionId(name, opened);
      await this.#configure(opened);
      return;
    }
    this.id = sessionId;
    const known = { sessionId, cwd, mcpServers, ...this.#meta };
    let opened: unknown;
    try {
      if (resumes) opened = await agent.request(methods.agent.session.resume, known);
      else if (loads) opened = await agent.request(methods.agent.session.load, known);
      else throw new Error('it can neither resume nor load a session');
    } catch (error) {
      const isUnknown = propertiesOf(error)['code'] === RESOURCE_NOT_FOUND;
      throw new OffstageError(
        'RELAY_LOST',
        `${name} cannot take the session "${clip(sessionId, 200)}" up again: ${
          isUnknown ? 'it does not know it' : messageOf(error)
        }`,
        { cause: error },
      );
    }
    await this.#configure(opened);
  }

  /** ACP-SESSION-5. Some options change others (the model may lack the mode), so all options are checked afterwards. */
  async #configure(opened: unknown): Promise<void> {
    const { sdk, name, configOptions } = this.#options;
    const { setConfigOption, setMode } = sdk.methods.agent.session;
    const { agent } = this.#connection;
    const sessionId = this.id;
    let options = readSessionOptions(opened);
    const current = (id: string) => options.find((one) => one.id === id);
    const failed = (id: string, value: string | boolean, why: string, cause?: unknown): Error => {
      const { values = null } = current(id) ?? {};
      const offered = values ?? options.map((one) => one.id);
      const offers = offered.length > 0 ? `; it offers ${offered.join(', ')}` : '';
      const message = `${name} does not set its option "${id}" to ${JSON.stringify(value)}: ${why}${clip(offers, 1_000)}`;
      return new OffstageError('RELAY_FAILED', message, { cause });
    };
    for (const [id, value] of Object.entries(configOptions)) {
      const option = current(id);
      if (option?.current === value) continue;
      try {
        if (option?.isBareMode === true && typeof value === 'string') {
          await agent.request(setMode, { sessionId, modeId: value });
          options = options.map((one) => (one === option ? { ...one, current: value } : one));
        } else {
          const typed =
            typeof value === 'boolean' ? { type: 'boolean' as const, value } : { value };
          const bare = options.filter(({ isBareMode }) => isBareMode);
          const set = await agent.request(setConfigOption, { sessionId, configId: id, ...typed });
          options = [...readSessionOptions(set), ...bare];
        }
      } catch (error) {
        throw failed(id, value, messageOf(error), error);
      }
    }
    for (const [id, value] of Object.entries(configOptions)) {
      const is = current(id)?.current;
      if (is !== value) throw failed(id, value, `it says ${JSON.stringify(is ?? null)}`);
    }
  }

  /** Passes the trace context to the agent. */
  get #meta(): { readonly _meta?: { readonly traceparent: string } } {
    const traceparent = this.#options.start.traceparent?.();
    return traceparent === undefined ? {} : { _meta: { traceparent } };
  }

  /** ACP-SESSION-1 */
  #cancel(): void {
    const { methods } = this.#options.sdk;
    for (const requestId of this.#open.keys()) this.answer(requestId, { type: 'cancelled' });
    this.#connection.agent
      .notify(methods.agent.session.cancel, { sessionId: this.id })
      // If the agent has ended, calls over its connection reject.
      .catch(() => {});
  }

  #send(event: RelayEvent): void {
    if (!this.#isOver) this.#options.start.receive(event);
  }

  /** Reports the usage since the last report, because the agent reports totals. */
  #used(tokens: Tokens, cost: unknown = this.#sums.cost): void {
    const kept = (name: keyof Tokens): number =>
      tokens[name] === undefined ? this.#sums[name] : sumOf(tokens[name]);
    const sums = {
      inputTokens: kept('inputTokens'),
      outputTokens: kept('outputTokens'),
      cachedReadTokens: kept('cachedReadTokens'),
      cachedWriteTokens: kept('cachedWriteTokens'),
      thoughtTokens: kept('thoughtTokens'),
      cost: sumOf(cost),
    };
    const since = (name: keyof typeof sums): number => Math.max(0, sums[name] - this.#sums[name]);
    const part = (name: keyof Tokens) =>
      typeof tokens[name] === 'number' ? since(name) : undefined;
    const parts = withoutUndefined({
      cachedInputTokens: part('cachedReadTokens'),
      cacheWriteTokens: part('cachedWriteTokens'),
      reasoningTokens: part('thoughtTokens'),
    });
    this.#send({
      type: 'usage',
      inputTokens: since('inputTokens'),
      outputTokens: since('outputTokens'),
      ...parts,
      cost: since('cost'),
    });
    this.#sums = sums;
  }

  /** ACP-SESSION-2 */
  #updated({ sessionId, update }: SessionNotification): void {
    if (this.#turn === null || sessionId !== this.id) return;
    if (update.sessionUpdate === 'usage_update' && update.cost) {
      const { amount } = update.cost;
      this.#used({}, amount);
    }
    for (const event of this.#tools.events(update)) this.#send(event);
  }

  #endTurn(turn: number, ended: RelayEvent): void {
    if (this.#turn !== turn) return;
    this.#turn = null;
    this.#cancelGrace?.();
    this.#cancelGrace = null;
    for (const requestId of this.#open.keys()) this.answer(requestId, { type: 'cancelled' });
    this.#turnEnded?.();
    this.#send(ended);
  }

  /** Stops an agent whose output cannot be read any more. ACP-SESSION-3 */
  async #cut(): Promise<void> {
    const { agent, start, graceMs } = this.#options;
    if (agent.hasExited || this.#isOver) return;
    this.#isCut = true;
    await agent.end(start.scheduler, graceMs);
  }

  /** ACP-SESSION-3 */
  async #untilClosed(): Promise<void> {
    const { agent, start } = this.#options;
    const { message } = await agent.exited;
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    const cancelTimer = start.scheduler.schedule(resolve, DRAIN_MS);
    void this.#connection.closed.then(resolve);
    await isRead;
    cancelTimer();
    this.#closed(this.#isCut ? `its output was closed, and ${message}` : message);
  }

  #closed(message: string): void {
    this.#cancelGrace?.();
    this.#connection.close();
    for (const requestId of this.#open.keys()) this.answer(requestId, { type: 'cancelled' });
    if (this.#isOver) return;
    this.#turn = null;
    this.#send({ type: 'closed', message });
    this.#isOver = true;
  }

  async #asksPermission(
    params: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const { options, toolCall, sessionId } = params;
    if (sessionId !== this.id) return permissionOutcome(options, { type: 'cancelled' });
    const { title, kind, input } = this.#tools.asked(params);
    const lasting = lastingIn(options);
    const answer = await this.#ask(signal, (requestId) => ({
      type: 'permission',
      requestId,
      toolId: toolCall.toolCallId,
      title,
      kind,
      input,
      ...(lasting === undefined ? {} : { lasting }),
    }));
    if (answer.type !== 'permitted') this.#tools.refused(toolCall.toolCallId);
    return permissionOutcome(options, answer);
  }

  /** Asks for the fields of a form one by one. */
  async #asks(
    params: CreateElicitationRequest,
    signal: AbortSignal,
  ): Promise<CreateElicitationResponse> {
    const fields = fieldsOf(params);
    if (!fields) return NO_FORM;
    const content = await fillIn(fields, ({ text, options }) =>
      this.#ask(signal, (requestId) => ({ type: 'question', requestId, text, options })),
    );
    return content ? { action: 'accept', content } : NO_FORM;
  }

  /** Forwards a request and waits for the answer. */
  #ask(signal: AbortSignal, event: (requestId: string) => RelayEvent): Promise<RelayAnswer> {
    if (this.#isOver || this.#turn === null || signal.aborted)
      return Promise.resolve({ type: 'cancelled' });
    this.#requests += 1;
    const requestId = `request-${this.#requests}`;
    return new Promise((resolve) => {
      this.#open.set(requestId, resolve);
      signal.addEventListener(
        'abort',
        () => {
          if (!this.#open.has(requestId)) return;
          this.answer(requestId, { type: 'cancelled' });
          this.#send({ type: 'withdrawn', requestId });
        },
        { once: true },
      );
      this.#send(event(requestId));
    });
  }
}

/** Returns the lines that are messages, and reports all other output. */
function lines(stdout: Readable, report: (error: unknown) => void): ReadableStream<Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  /** The chunks of an incomplete line. */
  let pieces: string[] = [];
  let size = 0;
  const bytes = Readable.toWeb(stdout) as ReadableStream<Uint8Array>;
  return bytes.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const [piece = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
        pieces.push(piece);
        size += piece.length;
        if (size > MAX_LINE) {
          report(unreadable(pieces.join('')));
          controller.error(new Error(`a line of more than ${MAX_LINE} characters`));
          return;
        }
        const rest = more.pop();
        if (rest === undefined) return;
        for (const line of [pieces.join(''), ...more])
          if (isMessage(line)) controller.enqueue(encoder.encode(`${line}\n`));
          else if (line.trim() !== '') report(unreadable(line));
        pieces = [rest];
        size = rest.length;
      },
    }),
  );
}

function sumOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}

function unreadable(line: string): ProtocolError {
  return new ProtocolError(
    'INVALID_EVENT',
    `Expected a message of the agent, got a line that is none: ${clip(line, 200)}`,
    { raw: clip(line, 2_000) },
  );
}

function isMessage(line: string): boolean {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === 'object' && message !== null && 'jsonrpc' in message;
  } catch {
    return false;
  }
}
