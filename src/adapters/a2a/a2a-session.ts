// One session with a hosted agent: its context, the current task and the open request.
//
// Owns:     reading events, polling when no more events arrive, and sending each answer once.
// Does not: execute the task, which continues at the agent even if no one reads its events.
//
// Invariants
//   A2A-SESSION-1. An answer is sent once, to the task that asked for it. The answer's message id shows whether the
//                  agent has received the answer.
//   A2A-SESSION-2. Only the task's state determines whether the task has ended. A stream that closes early does not end
//       the task.
//   A2A-SESSION-3. Events of other tasks, and of turns that have ended, are dropped.

import type { Artifact, Part, StreamResponse, TaskStatus } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import type {
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
} from '../../actors/ports/relay.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { clip } from '../../values/clip.ts';
import { messageOf, ProtocolError } from '../../values/errors.ts';
import { readSessionId, unknownSession, writeSessionId } from '../relays/remote-agent.ts';
import type { Sdk } from './load-sdk.ts';
import {
  ANSWER,
  answerIdOf,
  answerWords,
  askingOf,
  contentOf,
  hasAnswer,
  isWords,
  phaseOf,
  textOf,
  userMessage,
} from './mapping.ts';

interface A2aSessionOptions {
  readonly sdk: Sdk;
  readonly name: string;
  readonly client: Client;
  /** Whether the agent streams events. */
  readonly streams: boolean;
  readonly start: RelayStart;
  readonly graceMs: number;
  readonly pollMs: number;
  /** Aborts all requests. */
  readonly over: AbortController;
}

type Payload = NonNullable<StreamResponse['payload']>;
type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];

interface Gathered {
  name: string;
  words: string;
  files: readonly Part[];
}

/** A turn: one of the agent's tasks, from its first message to its final state. */
interface Turn {
  taskId: string | null;
  /** Stops reading the task's events. */
  reading: AbortController;
  request: string | null;
  readonly answered: Set<string>;
  readonly artifacts: Map<string, Gathered>;
  /** The artifact that contains the latest text. */
  speaking: string | null;
  progress: string;
  isCancelling: boolean;
  readonly ended: PromiseWithResolvers<RelayRelease>;
}

type Events = (signal: AbortSignal) => AsyncIterable<StreamResponse>;

/** How many of a task's messages are searched for an answer. */
const HISTORY = 50;
const MAX_TASKS = 20;
const MAX_KEPT = 4 * 1024 * 1024;
const MIN_ARTIFACT = 200;
const MAX_NAME = 200;

export class A2aSession implements RelaySession {
  isRunning = false;
  readonly #options: A2aSessionOptions;
  #contextId: string;
  #turn: Turn | null = null;
  #isOver = false;
  #cancelGrace: (() => void) | null = null;
  #kept = 0;

  static async open(options: A2aSessionOptions): Promise<A2aSession> {
    const session = new A2aSession(options);
    const { resume } = options.start;
    if (resume !== undefined) await session.#takeUp(resume);
    return session;
  }

  private constructor(options: A2aSessionOptions) {
    this.#options = options;
    this.#contextId = options.start.ids.next('ctx');
  }

  get id(): string {
    return writeSessionId('a2a', this.#contextId, this.#turn?.taskId ?? null);
  }

  prompt({ text }: RelayPrompt): void {
    if (this.#isOver) return;
    const turn = this.#begin(null);
    const messageId = this.#options.start.ids.next('msg');
    const ids = { messageId, contextId: this.#contextId, taskId: '' };
    void this.#follow(turn, this.#sending(text, ids), 'sends');
  }

  /** The relay declares that it does not support steering. */
  steer(): void {}

  answer(requestId: string, answer: RelayAnswer): void {
    const turn = this.#turn;
    if (!turn || turn.request !== requestId || turn.taskId === null || turn.isCancelling) return;
    turn.request = null;
    turn.answered.add(requestId);
    const { text, metadata } = answerWords(answer);
    const ids = {
      messageId: answerIdOf(requestId),
      contextId: this.#contextId,
      taskId: turn.taskId,
    };
    void this.#follow(turn, this.#sending(text, ids, { [ANSWER]: metadata }), 'sends');
  }

  interrupt(): void {
    const turn = this.#turn;
    if (!turn || turn.isCancelling) return;
    const { start, graceMs } = this.#options;
    turn.isCancelling = true;
    turn.request = null;
    this.#cancelGrace = start.scheduler.schedule(
      () => this.#close(`it did not cancel its task within ${graceMs} ms`),
      graceMs,
    );
    if (turn.taskId !== null) void this.#cancel(turn, turn.taskId);
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
    this.#stopGrace();
    this.#options.over.abort(new Error('released'));
    return how;
  }

  async #takeUp(resume: string): Promise<void> {
    const { sdk, name, client, start } = this.#options;
    const known = readSessionId('a2a', resume);
    if (!known) throw unknownSession(name, resume);
    const { conversation: contextId } = known;
    this.#contextId = contextId;
    const taskId = (await this.#taskUnderWay(contextId)) ?? known.taskId;
    if (taskId === null) return;
    const task = await client.getTask(this.#byId(taskId));
    const phase = task.status ? phaseOf(sdk, task.status) : null;
    // The relay has cancelled the task, so the next prompt starts a new task.
    if (phase?.type === 'ended' && phase.reason === 'cancelled') return;
    this.isRunning = true;
    const turn = this.#begin(taskId);
    if (phase?.type === 'asks' && task.status) {
      const { requestId } = askingOf(phase.kind, taskId, task.status);
      // A2A-SESSION-1
      if (hasAnswer(task, requestId)) turn.answered.add(requestId);
    }
    const renamed = taskId !== known.taskId;
    // The relay's caller must receive the session before the session's events.
    start.scheduler.yieldThen(() => {
      if (this.#turn !== turn) return;
      if (renamed) this.#send({ type: 'session_id', id: this.id });
      void this.#follow(turn, only({ $case: 'task', value: task }), 'reads');
    });
  }

  /** Returns the context's unfinished task, whose id may be missing from the journal. */
  async #taskUnderWay(contextId: string): Promise<string | null> {
    const { sdk, client } = this.#options;
    try {
      const { tasks } = await client.listTasks({
        tenant: '',
        contextId,
        status: sdk.TaskState.TASK_STATE_UNSPECIFIED,
        pageSize: MAX_TASKS,
        pageToken: '',
        historyLength: 0,
        statusTimestampAfter: undefined,
        includeArtifacts: false,
      });
      const found = tasks.find(
        (task) =>
          task.contextId === contextId &&
          task.status !== undefined &&
          phaseOf(sdk, task.status).type !== 'ended',
      );
      return found?.id ?? null;
    } catch {
      // Some agents cannot list their tasks.
      return null;
    }
  }

  #begin(taskId: string | null): Turn {
    const turn: Turn = {
      taskId,
      reading: new AbortController(),
      request: null,
      answered: new Set(),
      artifacts: new Map(),
      speaking: null,
      progress: '',
      isCancelling: false,
      ended: Promise.withResolvers(),
    };
    this.#turn = turn;
    this.#kept = 0;
    return turn;
  }

  #sending(
    text: string,
    ids: Parameters<typeof userMessage>[2],
    metadata?: Record<string, unknown>,
  ): Events {
    const { sdk, client } = this.#options;
    const message = userMessage(sdk, text, ids, metadata);
    return (signal) => {
      const configuration = {
        acceptedOutputModes: [],
        taskPushNotificationConfig: undefined,
        historyLength: HISTORY,
        // With this setting, an agent that does not stream returns the task immediately.
        returnImmediately: true,
      };
      return client.sendMessageStream(
        { tenant: '', message, configuration, metadata: undefined },
        { signal },
      );
    };
  }

  /** Reads events until the task ends or asks a question. */
  async #follow(turn: Turn, first: Events | null, how: 'sends' | 'reads'): Promise<void> {
    turn.reading.abort();
    turn.reading = new AbortController();
    const { signal } = turn.reading;
    const { client, streams, start, pollMs } = this.#options;
    const isOpen = (): boolean => this.#turn === turn && !signal.aborted && turn.request === null;
    let isSending = how === 'sends';
    let events: Events | null = first;
    for (let round = 0; ; round += 1) {
      try {
        for await (const { payload } of events?.(signal) ?? []) {
          if (this.#turn !== turn || signal.aborted) return;
          isSending = false;
          if (payload) this.#take(turn, payload);
        }
      } catch (error) {
        if (this.#turn !== turn || signal.aborted) return;
        if (isSending) {
          await this.#notSent(turn, error);
          return;
        }
        start.report(this.#unreadable(error));
      }
      if (!isOpen()) return;
      if (turn.taskId === null) {
        this.#end(turn, 'failed', 'it answered with neither a task nor a message');
        return;
      }
      // A2A-SESSION-2
      if (!(await this.#look(turn, turn.taskId, signal)) || !isOpen()) return;
      if (round > 0 || !streams) await this.#pause(pollMs, signal);
      if (!isOpen()) return;
      const { taskId } = turn;
      events = streams
        ? (reading) => client.resubscribeTask({ tenant: '', id: taskId }, { signal: reading })
        : null;
    }
  }

  /** Reads the task's state. Returns false on failure. */
  async #look(turn: Turn, taskId: string, signal: AbortSignal): Promise<boolean> {
    try {
      const task = await this.#options.client.getTask(this.#byId(taskId), { signal });
      if (this.#turn === turn && !signal.aborted) this.#take(turn, { $case: 'task', value: task });
      return true;
    } catch (error) {
      if (this.#turn === turn && !signal.aborted) this.#close(messageOf(error));
      return false;
    }
  }

  /** Called when a message was refused or might not have been delivered. */
  async #notSent(turn: Turn, error: unknown): Promise<void> {
    if (!(error instanceof this.#options.sdk.A2AError)) {
      this.#close(messageOf(error));
      return;
    }
    // The task may have ended in the meantime.
    if (turn.taskId !== null && !(await this.#look(turn, turn.taskId, turn.reading.signal))) return;
    if (this.#turn === turn) this.#end(turn, 'failed', messageOf(error));
  }

  async #cancel(turn: Turn, id: string): Promise<void> {
    const { client, start } = this.#options;
    try {
      const task = await client.cancelTask({ tenant: '', id, metadata: undefined });
      if (this.#turn === turn) this.#take(turn, { $case: 'task', value: task });
    } catch (error) {
      if (this.#turn === turn) start.report(this.#unreadable(error));
    }
    if (this.#turn === turn) await this.#follow(turn, null, 'reads');
  }

  #take(turn: Turn, payload: Payload): void {
    if (payload.$case === 'message') {
      const { contextId, parts } = payload.value;
      if (turn.taskId !== null) return;
      if (contextId !== '') this.#contextId = contextId;
      this.#gather(turn, { artifactId: '', name: '', parts }, false);
      this.#end(turn, 'completed');
      return;
    }
    const { value } = payload;
    const taskId = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
    if (turn.taskId === null) this.#named(turn, taskId, value.contextId);
    // A2A-SESSION-3
    if (turn.taskId !== taskId) return;
    if (payload.$case === 'task')
      for (const artifact of payload.value.artifacts) this.#gather(turn, artifact, false);
    if (payload.$case === 'artifactUpdate') {
      const { artifact, append } = payload.value;
      if (artifact) this.#gather(turn, artifact, append);
    } else if (payload.value.status) this.#changed(turn, taskId, payload.value.status);
  }

  /** The task has an id, so it can be resumed later. */
  #named(turn: Turn, taskId: string, contextId: string): void {
    turn.taskId = taskId;
    if (contextId !== '') this.#contextId = contextId;
    this.#send({ type: 'session_id', id: this.id });
    if (turn.isCancelling) void this.#cancel(turn, taskId);
  }

  #changed(turn: Turn, taskId: string, status: TaskStatus): void {
    const phase = phaseOf(this.#options.sdk, status);
    const text = textOf(status.message?.parts ?? []).trim();
    if (phase.type === 'ended') {
      if (phase.reason === 'completed' && status.message) this.#conclude(turn, status.message);
      this.#end(turn, phase.reason, text);
      return;
    }
    if (turn.isCancelling) return;
    if (phase.type === 'works') {
      this.#withdraw(turn);
      if (text !== '' && text !== turn.progress) this.#send({ type: 'progress', text });
      turn.progress = text;
      return;
    }
    const asking = askingOf(phase.kind, taskId, status);
    const { requestId } = asking;
    if (turn.request === requestId || turn.answered.has(requestId)) return;
    this.#withdraw(turn);
    turn.request = requestId;
    this.#send(asking);
  }

  #withdraw(turn: Turn): void {
    const { request } = turn;
    turn.request = null;
    if (request !== null) this.#send({ type: 'withdrawn', requestId: request });
  }

  /** Reports the final state's message, unless an artifact contained the same text. */
  #conclude(turn: Turn, { parts }: { readonly parts: readonly Part[] }): void {
    const text = textOf(parts.filter(isWords)).trim();
    const isSaid = [...turn.artifacts.values()].some(({ words }) => words.trim() === text);
    const rest = isSaid ? parts.filter((part) => !isWords(part)) : parts;
    this.#gather(turn, { artifactId: '', name: '', parts: rest }, false);
  }

  /** Stores an artifact or a part of one, and forwards its new text. */
  #gather(
    turn: Turn,
    {
      artifactId,
      name,
      parts,
    }: Pick<Artifact, 'artifactId' | 'name'> & { readonly parts: readonly Part[] },
    append: boolean,
  ): void {
    if (turn.isCancelling) return;
    const known = turn.artifacts.get(artifactId) ?? { name: '', words: '', files: [] };
    if (name !== '') known.name = clip(name, MAX_NAME);
    const files = parts.filter((part) => !isWords(part));
    const text = textOf(parts.filter(isWords));
    // Even an artifact without content takes up memory.
    if (!turn.artifacts.has(artifactId)) this.#kept += artifactId.length + MIN_ARTIFACT;
    this.#kept += text.length + files.reduce((sum, part) => sum + sizeOf(part), 0);
    if (this.#kept > MAX_KEPT) {
      this.#close(`its artifacts are larger than ${MAX_KEPT} characters`);
      return;
    }
    turn.artifacts.set(artifactId, known);
    known.files = append ? [...known.files, ...files] : files;
    // When the whole task is read, it contains the artifact again.
    const isRepeated = !append && text.startsWith(known.words);
    const fresh = isRepeated ? text.slice(known.words.length) : text;
    known.words = append ? known.words + text : text;
    if (fresh === '') return;
    const isOther =
      turn.speaking !== null && (turn.speaking !== artifactId || !(append || isRepeated));
    turn.speaking = artifactId;
    this.#send({ type: 'words', text: isOther ? `\n\n${fresh}` : fresh });
  }

  #end(turn: Turn, reason: EndReason, message = ''): void {
    if (this.#turn !== turn) return;
    if (reason === 'completed')
      for (const [artifactId, { name, files }] of turn.artifacts)
        for (const part of files)
          this.#send({
            type: 'artifact',
            name: clip(part.filename || name || artifactId || 'artifact', MAX_NAME),
            ...contentOf(part),
          });
    this.#turn = null;
    this.#stopGrace();
    turn.reading.abort();
    this.#send({ type: 'turn_ended', reason, ...(message === '' ? {} : { message }) });
    turn.ended.resolve('cancelled');
  }

  /** Abandons the agent, because its output cannot be read or it does not stop. */
  #close(message: string): void {
    const turn = this.#turn;
    this.#turn = null;
    this.#stopGrace();
    this.#options.over.abort(new Error('closed'));
    this.#send({ type: 'closed', message });
    this.#isOver = true;
    turn?.ended.resolve('killed');
  }

  #stopGrace(): void {
    this.#cancelGrace?.();
    this.#cancelGrace = null;
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.start.scheduler.schedule(resolve, ms);
    const all = AbortSignal.any([signal, this.#options.over.signal]);
    await raceAbort(promise, all).catch(() => {});
    cancel();
  }

  #byId(id: string): { tenant: string; id: string; historyLength: number } {
    return { tenant: '', id, historyLength: HISTORY };
  }

  #unreadable(error: unknown): ProtocolError {
    return new ProtocolError('INVALID_EVENT', `${this.#options.name}: ${messageOf(error)}`, {
      cause: error,
    });
  }

  #send(event: RelayEvent): void {
    if (!this.#isOver) this.#options.start.receive(event);
  }
}

function only(payload: Payload): Events {
  return async function* events() {
    yield { payload };
  };
}

function sizeOf({ content }: Part): number {
  if (content?.$case === 'data') return JSON.stringify(content.value ?? null).length;
  return content?.value.length ?? 0;
}
