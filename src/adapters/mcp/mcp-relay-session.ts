// One session with an MCP server's tool: the current call or task, and its input requests.
//
// Owns:     polling the task until it ends, and asking for a form's fields one by one.
// Does not: execute the task (the server does, even if no one reads the task's state).
//
// Invariants
//   MCP-RELAY-1. A form is answered only once. It is accepted only if the user's words say so. A yes accepts exactly
//       the form that the user saw.
//   MCP-RELAY-2. Only the task's state decides whether the task has ended. A lost connection does not end the task.
//   MCP-RELAY-3. A request does not reach the user if it arrives after the turn was cancelled or comes from another
//       task.
//   MCP-RELAY-4. A task may be waiting for an answer although its question never arrived. A broken connection may have
//       lost the question, and servers built on the official SDK send it only once. After the grace period, the session
//       drops the connection and resumes the task on a new one.

import { z } from 'zod';
import type {
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
  RelayTask,
} from '../../actors/ports/relay.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { clip } from '../../values/clip.ts';
import {
  ConfigurationError,
  messageOf,
  OffstageError,
  ProtocolError,
} from '../../values/errors.ts';
import { INPUT } from './forms.ts';
import { fieldsOf, fillIn, propertiesOf, type AskedForm } from '../relays/form-fields.ts';
import { readSessionId, unknownSession, writeSessionId } from '../relays/remote-agent.ts';
import {
  Refusal,
  type Asking,
  type CallResult,
  type RemoteServer,
  type RemoteTask,
  type RemoteTool,
  type FormResult,
  type Heard,
} from './remote-server.ts';

/** The data from which the arguments of a tool call are built. */
export interface McpPrompt {
  /** The subagent's instructions and task, or a later message to the subagent. */
  readonly text: string;
  /** The subagent's task; absent if it is unknown. */
  readonly task?: RelayTask;
}

interface McpRelaySessionOptions {
  readonly name: string;
  readonly tool: string;
  readonly argumentsOf: ((prompt: McpPrompt) => Readonly<Record<string, unknown>>) | null;
  /** Connects, and resumes the server session with this id if the server still has the session. */
  connect(heard: Heard, sessionId: string | null): Promise<RemoteServer>;
  readonly start: RelayStart;
  readonly graceMs: number;
  readonly pollMs: number;
  /** Aborts all requests. */
  readonly over: AbortController;
}

type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];
type Request = Extract<RelayEvent, { readonly type: 'permission' | 'question' }>;

/** One turn, which is one call to the tool. */
interface Turn {
  readonly number: number;
  taskId: string | null;
  /** Aborts the current call if it is not a task. */
  readonly calling: AbortController;
  readonly asked: Set<string>;
  /** Task requests that arrived before the task id. */
  early: Asking[];
  progress: string;
  /** Set while the task is waiting for an answer; null while the task is working. */
  wait: Wait | null;
  /** The number of requests that had arrived when the task was last read. */
  looked: number;
  isCancelling: boolean;
  readonly ended: PromiseWithResolvers<RelayRelease>;
}

interface Wait {
  /** The task's status message. A new message means that the task is waiting for another answer. */
  readonly message: string;
  /** The number of requests that had arrived before this wait. */
  readonly after: number;
}

/** The limits of the polling interval, regardless of the interval that the server requests. */
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 60_000;
/** The maximum number of requests that are held until the task's id is known. */
const MAX_EARLY = 100;

const argumentsSchema = z.record(z.string(), z.unknown());

export class McpRelaySession implements RelaySession {
  isRunning = false;
  readonly #options: McpRelaySessionOptions;
  readonly #open = new Map<string, (answer: RelayAnswer) => void>();
  /** Events that arrive before `open` returns the session. */
  #early: RelayEvent[] | null = [];
  #conversation: string;
  #server: RemoteServer | null = null;
  #tool: RemoteTool | null = null;
  #turn: Turn | null = null;
  /** The current task, which remains stored when the session is suspended. */
  #taskId: string | null = null;
  #turns = 0;
  #isOver = false;
  #wake: (() => void) | null = null;
  #isChanged = false;
  #cancelGrace: (() => void) | null = null;
  /** Cancels the timer for a question that has not arrived. */
  #cancelMute: (() => void) | null = null;
  #lettingGo: Promise<void> | null = null;

  static async open(options: McpRelaySessionOptions): Promise<McpRelaySession> {
    const session = new McpRelaySession(options);
    try {
      await session.#connect();
    } catch (error) {
      session.#isOver = true;
      session.#stopTimers();
      await session.#server?.close('suspended');
      throw error;
    }
    options.start.scheduler.yieldThen(() => session.#flush());
    return session;
  }

  private constructor(options: McpRelaySessionOptions) {
    this.#options = options;
    this.#conversation = options.start.ids.next('mcp');
  }

  get id(): string {
    return writeSessionId('mcp', this.#conversation, this.#taskId);
  }

  prompt({ text }: RelayPrompt): void {
    if (this.#isOver) return;
    void this.#call(this.#begin(null), text);
  }

  /** The relay declares that it does not support steering. */
  steer(): void {}

  answer(requestId: string, answer: RelayAnswer): void {
    const settle = this.#open.get(requestId);
    this.#open.delete(requestId);
    settle?.(answer);
  }

  interrupt(): void {
    const turn = this.#turn;
    if (!turn || turn.isCancelling) return;
    const { start, graceMs } = this.#options;
    turn.isCancelling = true;
    this.#cancelGrace = start.scheduler.schedule(
      () => this.#close(`it did not cancel its work within ${graceMs} ms`),
      graceMs,
    );
    if (turn.taskId !== null) void this.#cancel(turn.taskId);
    // A call that creates a task ends as soon as the task has an id.
    else if (this.#tool?.isTask !== true) turn.calling.abort(new Error('cancelled'));
    this.#dropRequests();
  }

  async release(why: 'ended' | 'suspended'): Promise<RelayRelease> {
    const turn = this.#turn;
    this.#isOver = true;
    let how: RelayRelease = 'idle';
    if (turn && why === 'ended') {
      this.interrupt();
      how = await turn.ended.promise;
    }
    this.#turn = null;
    this.#stopTimers();
    this.#open.clear();
    await this.#letGo(why);
    return how;
  }

  async #connect(): Promise<void> {
    const { name, start, over, connect, tool } = this.#options;
    const known = start.resume === undefined ? null : readSessionId('mcp', start.resume);
    if (start.resume !== undefined && !known) throw unknownSession(name, start.resume);
    // The relay's key, and the id of the server session if the server has sessions.
    const [key = this.#conversation, ...rest] = known?.conversation.split('@') ?? [];
    const sessionId = rest.length > 0 ? rest.join('@') : null;
    const heard: Heard = {
      asked: (taskId, asking) => this.#put(taskId, asking),
      changed: () => this.#changed(),
      progress: (text) => {
        if (this.#turn?.isCancelling === false) this.#send({ type: 'progress', text });
      },
      closed: (message) => this.#close(message),
      report: (error) => {
        if (!this.#isOver) start.report(this.#unreadable(error));
      },
    };
    const server = await connect(heard, sessionId);
    this.#server = server;
    this.#conversation = server.sessionId === null ? key : `${key}@${server.sessionId}`;
    const tools = await server.tools(over.signal);
    this.#tool = tools.find((one) => one.name === tool) ?? null;
    if (!this.#tool) {
      const names = clip(tools.map((one) => one.name).join(', '), 500);
      throw new ConfigurationError(
        'INVALID_OPTION',
        `mcpRelay: expected \`tool\` to be a tool of ${name} (${names || 'it has none'}), got "${tool}"`,
      );
    }
    if (known && known.taskId !== null) await this.#takeUp(server, known.taskId);
  }

  async #takeUp(server: RemoteServer, taskId: string): Promise<void> {
    const { name, start, over, graceMs } = this.#options;
    const turn = this.#begin(taskId);
    const look = async (): Promise<RemoteTask> => {
      try {
        return await server.look(taskId, over.signal);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        throw new OffstageError(
          'RELAY_LOST',
          `${name} does not know the task any more: ${error.message}`,
          {
            cause: error,
          },
        );
      }
    };
    let task = await look();
    if (task.status === 'input_required' && turn.asked.size === 0) {
      // If a server repeats the question, it does so unprompted.
      await this.#pause(graceMs);
      task = await look();
    }
    const isMute = task.status === 'input_required' && turn.asked.size === 0;
    if (isMute) await server.cancel(taskId).catch((error: unknown) => start.report(error));
    // The next prompt starts a new call.
    if (isMute || task.status === 'cancelled') {
      this.#turn = null;
      this.#taskId = null;
      return;
    }
    this.isRunning = true;
    start.scheduler.yieldThen(() => void this.#follow(turn, task));
  }

  #begin(taskId: string | null): Turn {
    this.#turns += 1;
    const turn: Turn = {
      number: this.#turns,
      taskId,
      calling: new AbortController(),
      asked: new Set(),
      early: [],
      progress: '',
      wait: null,
      looked: 0,
      isCancelling: false,
      ended: Promise.withResolvers(),
    };
    this.#turn = turn;
    this.#taskId = taskId;
    return turn;
  }

  async #call(turn: Turn, text: string): Promise<void> {
    const { start, over } = this.#options;
    const server = this.#server;
    const tool = this.#tool;
    if (!server || !tool) return;
    try {
      const args = this.#argumentsOf(tool, text);
      const signal = AbortSignal.any([turn.calling.signal, over.signal]);
      const begun = await server.call(tool, args, signal);
      if (this.#turn !== turn) return;
      if (begun.type === 'result') {
        this.#conclude(turn, begun.result);
        return;
      }
      turn.taskId = begun.task.taskId;
      this.#taskId = turn.taskId;
      this.#send({ type: 'session_id', id: this.id });
      if (turn.isCancelling) void this.#cancel(turn.taskId);
      for (const asking of turn.early) this.#put(turn.taskId, asking);
      await this.#follow(turn, begun.task);
    } catch (error) {
      if (this.#turn !== turn) return;
      if (turn.calling.signal.aborted) this.#end(turn, 'cancelled');
      else if (error instanceof Refusal || error instanceof OffstageError)
        this.#end(turn, 'failed', error.message);
      else this.#close(messageOf(error));
      start.report(this.#unreadable(error));
    }
  }

  #argumentsOf(tool: RemoteTool, text: string): Readonly<Record<string, unknown>> {
    const { argumentsOf, start } = this.#options;
    if (argumentsOf) {
      const { task } = start;
      const given = argumentsOf({ text, ...(task === undefined ? {} : { task }) });
      const { success, data, error } = argumentsSchema.safeParse(given);
      if (success) return data;
      throw new ConfigurationError(
        'INVALID_OPTION',
        `mcpRelay: expected \`arguments\` to return an object: ${z.prettifyError(error)}`,
      );
    }
    const { properties = {}, required = [] } = tool.inputSchema;
    const texts = Object.keys(properties).filter((name) => properties[name]?.['type'] === 'string');
    const needed = required.length > 0 ? required : texts;
    const [only] = needed;
    if (needed.length === 1 && only !== undefined && texts.includes(only)) return { [only]: text };
    throw new ConfigurationError(
      'INVALID_OPTION',
      `mcpRelay: the tool "${tool.name}" takes (${Object.keys(properties).join(', ')}): expected \`arguments\`, a function that makes them`,
    );
  }

  /** Polls the task until it has ended. */
  async #follow(turn: Turn, first: RemoteTask): Promise<void> {
    const { over, pollMs } = this.#options;
    const server = this.#server;
    let task = first;
    try {
      for (;;) {
        if (this.#turn !== turn || !server) return;
        this.#take(turn, task);
        if (this.#turn !== turn) return;
        this.#listen(turn, task);
        await this.#pause(Math.min(Math.max(task.pollMs ?? pollMs, MIN_POLL_MS), MAX_POLL_MS));
        if (this.#turn !== turn) return;
        task = await server.look(task.taskId, over.signal);
      }
    } catch (error) {
      if (this.#turn !== turn) return;
      if (error instanceof Refusal) this.#end(turn, 'failed', error.message);
      else this.#close(messageOf(error));
    }
  }

  #take(turn: Turn, { status, message, result }: RemoteTask): void {
    if (status === 'cancelled') {
      this.#end(turn, 'cancelled', message);
      return;
    }
    if (status === 'completed' || status === 'failed') {
      if (result) this.#conclude(turn, result);
      else this.#end(turn, status, message);
      return;
    }
    const text = message.trim();
    if (status === 'working' && text !== '' && text !== turn.progress && !turn.isCancelling)
      this.#send({ type: 'progress', text });
    turn.progress = text;
  }

  /** MCP-RELAY-4 */
  #listen(turn: Turn, { status, message }: RemoteTask): void {
    if (status !== 'input_required') turn.wait = null;
    else if (turn.wait?.message !== message) turn.wait = { message, after: turn.looked };
    turn.looked = turn.asked.size;
    if (!turn.wait || turn.isCancelling) {
      this.#stopMute();
      return;
    }
    // If the question has been answered, the connection remains open, because the server may be working.
    if (turn.asked.size > turn.wait.after || this.#open.size > 0) {
      turn.wait = { message, after: -1 };
      this.#stopMute();
      return;
    }
    const { start, graceMs } = this.#options;
    this.#cancelMute ??= start.scheduler.schedule(
      () => this.#close(`it waits for an answer to a question that did not come in ${graceMs} ms`),
      graceMs,
    );
  }

  #conclude(turn: Turn, { content, structuredContent, isError }: CallResult): void {
    const text = content
      .flatMap((part) => (part.type === 'text' ? [part.text ?? ''] : []))
      .join('\n');
    if (isError === true) {
      this.#end(turn, 'failed', text);
      return;
    }
    if (text !== '') this.#send({ type: 'words', text });
    for (const part of content) {
      const artifact = artifactOf(part);
      if (artifact) this.#send(artifact);
    }
    if (text === '' && structuredContent !== undefined && structuredContent !== null)
      this.#send({
        type: 'artifact',
        name: 'result',
        mediaType: 'application/json',
        content: JSON.stringify(structuredContent),
      });
    this.#end(turn, 'completed');
  }

  async #cancel(taskId: string): Promise<void> {
    try {
      await this.#server?.cancel(taskId);
    } catch (error) {
      if (this.#turn) this.#options.start.report(this.#unreadable(error));
    }
    this.#changed();
  }

  #put(taskId: string | null, asking: Asking): void {
    this.#asked(taskId, asking).catch((error: unknown) => {
      this.#options.start.report(this.#unreadable(error));
      asking.answer({ action: 'decline' });
    });
  }

  async #asked(taskId: string | null, asking: Asking): Promise<void> {
    const turn = this.#turn;
    const { key, form, answer } = asking;
    if (turn && taskId !== null && turn.taskId === null) {
      if (turn.early.length < MAX_EARLY) turn.early.push(asking);
      else answer({ action: 'decline' });
      return;
    }
    if (turn?.asked.has(key) === true) return;
    turn?.asked.add(key);
    this.#stopMute();
    const isOther = taskId !== null && turn !== null && taskId !== turn.taskId;
    // MCP-RELAY-3
    if (!turn || turn.isCancelling || isOther) {
      if (!this.#isOver) answer({ action: 'cancel' });
      return;
    }
    this.#changed();
    const of = taskId ?? turn.taskId ?? `${this.#conversation}-${turn.number}`;
    const result = await this.#fill(`${of}:${key}`, form, asking.signal);
    if (this.#turn === turn && result) answer(turn.isCancelling ? { action: 'cancel' } : result);
  }

  /** Asks for all fields of a form. MCP-RELAY-1 */
  async #fill(
    id: string,
    form: AskedForm,
    signal: AbortSignal | undefined,
  ): Promise<FormResult | null> {
    const consent = consentIn(form);
    if (consent) {
      const title = form.message.trim() || 'It needs your consent';
      const asked = { type: 'permission', requestId: id, title, kind: 'confirmation' } as const;
      const { type } = await this.#ask({ ...asked, input: consent.input }, signal);
      if (type === 'permitted') return consent.yes;
      return type === 'denied' ? consent.no : { action: 'decline' };
    }
    const fields = fieldsOf(form);
    if (!fields) {
      const message = `${this.#options.name}: expected a form of flat fields`;
      this.#options.start.report(new ProtocolError('INVALID_EVENT', message, { raw: form }));
      return { action: 'decline' };
    }
    const content = await fillIn(fields, ({ key, text, options }) =>
      this.#ask({ type: 'question', requestId: `${id}:${key}`, text, options }, signal),
    );
    return content ? { action: 'accept', content } : { action: 'decline' };
  }

  /** Forwards a request and waits for the answer. */
  #ask(request: Request, signal: AbortSignal | undefined): Promise<RelayAnswer> {
    const { requestId } = request;
    if (signal?.aborted === true || this.#turn?.isCancelling !== false)
      return Promise.resolve({ type: 'cancelled' });
    return new Promise((resolve) => {
      this.#open.set(requestId, resolve);
      signal?.addEventListener(
        'abort',
        () => {
          if (!this.#open.has(requestId)) return;
          this.answer(requestId, { type: 'cancelled' });
          this.#send({ type: 'withdrawn', requestId });
        },
        { once: true },
      );
      this.#send(request);
    });
  }

  #end(turn: Turn, reason: EndReason, message = ''): void {
    if (this.#turn !== turn) return;
    for (const requestId of this.#open.keys()) this.#send({ type: 'withdrawn', requestId });
    this.#turn = null;
    this.#taskId = null;
    this.#dropRequests();
    this.#stopTimers();
    this.#changed();
    this.#send({ type: 'turn_ended', reason, ...(message === '' ? {} : { message }) });
    turn.ended.resolve('cancelled');
  }

  /** Drops the connection to a server that is unreachable or does not stop. */
  #close(message: string): void {
    const turn = this.#turn;
    if (this.#isOver && !turn) return;
    this.#turn = null;
    this.#dropRequests();
    this.#stopTimers();
    this.#send({ type: 'closed', message });
    this.#isOver = true;
    // If a server does not stop, its session is not resumed.
    void this.#letGo(turn?.isCancelling === true ? 'ended' : 'suspended');
    turn?.ended.resolve('killed');
  }

  #letGo(why: 'ended' | 'suspended'): Promise<void> {
    this.#lettingGo ??= this.#disconnect(why);
    return this.#lettingGo;
  }

  async #disconnect(why: 'ended' | 'suspended'): Promise<void> {
    this.#changed();
    const { start, graceMs, over } = this.#options;
    const abort = (): void => over.abort(new Error('released'));
    const cancelTimer = start.scheduler.schedule(abort, graceMs);
    await this.#server?.close(why);
    cancelTimer();
    abort();
  }

  #dropRequests(): void {
    for (const requestId of this.#open.keys()) this.answer(requestId, { type: 'cancelled' });
  }

  #stopTimers(): void {
    this.#cancelGrace?.();
    this.#cancelGrace = null;
    this.#stopMute();
  }

  #stopMute(): void {
    this.#cancelMute?.();
    this.#cancelMute = null;
  }

  #changed(): void {
    this.#isChanged = true;
    this.#wake?.();
  }

  /** Waits for a change, but not longer than `ms` milliseconds. */
  async #pause(ms: number): Promise<void> {
    if (!this.#isChanged) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancelTimer = this.#options.start.scheduler.schedule(resolve, ms);
      this.#wake = resolve;
      await raceAbort(promise, this.#options.over.signal).catch(() => {});
      this.#wake = null;
      cancelTimer();
    }
    this.#isChanged = false;
  }

  #unreadable(error: unknown): ProtocolError {
    return new ProtocolError('INVALID_EVENT', `${this.#options.name}: ${messageOf(error)}`, {
      cause: error,
    });
  }

  #flush(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const event of early) this.#send(event);
  }

  #send(event: RelayEvent): void {
    if (this.#isOver) return;
    if (this.#early) this.#early.push(event);
    else this.#options.start.receive(event);
  }
}

interface Consent {
  readonly input: unknown;
  readonly yes: FormResult;
  readonly no: FormResult;
}

/** Returns the approval question for a form that asks only for yes or no; null for any other form. */
function consentIn(form: AskedForm): Consent | null {
  const { mode, requestedSchema, _meta } = form as AskedForm & {
    readonly _meta?: Readonly<Record<string, unknown>> | null;
  };
  if ((mode ?? 'form') !== 'form') return null;
  const properties = [...propertiesOf(requestedSchema)];
  const [[name, property] = [], ...more] = properties;
  const input = _meta?.[INPUT] ?? null;
  if (name === undefined)
    return { input, yes: { action: 'accept', content: {} }, no: { action: 'decline' } };
  if (more.length > 0 || property?.['type'] !== 'boolean') return null;
  return {
    input,
    yes: { action: 'accept', content: { [name]: true } },
    no: { action: 'accept', content: { [name]: false } },
  };
}

function artifactOf(part: CallResult['content'][number]): RelayEvent | null {
  const { type, data, mimeType, uri, resource } = part;
  const name = clip(part.name || resource?.uri || uri || type, 200);
  if (type === 'image' || type === 'audio') {
    const mediaType = mimeType || 'application/octet-stream';
    return { type: 'artifact', name, mediaType, content: `data:${mediaType};base64,${data ?? ''}` };
  }
  if (type === 'resource_link')
    return { type: 'artifact', name, mediaType: 'text/uri-list', content: uri ?? '' };
  if (type !== 'resource' || !resource) return null;
  const { text, blob } = resource;
  const mediaType =
    resource.mimeType || (text === undefined ? 'application/octet-stream' : 'text/plain');
  const content = text ?? `data:${mediaType};base64,${blob ?? ''}`;
  return { type: 'artifact', name, mediaType, content };
}
