// One session with Claude Code: the current turn, the process that works on it, and the open request.
//
// Owns:     starting a process for each stretch of work, and stopping it when a call is deferred or the turn ends.
// Does not: store the conversation (Claude's files do).
//
// Invariants
//   CLAUDE-SESSION-1. A call that needs permission is deferred before it runs. The process then ends. The call runs
//       only after an answer to it, and only once.
//   CLAUDE-SESSION-2. If a turn ends with a deferred call, the call is denied before the next prompt is processed.
//   CLAUDE-SESSION-3. A permission does not change Claude's settings. A permission is lasting only if the answer says
//       so. A lasting permission is stored in the session's file until the session ends, and applies to calls with the
//       same key.

import { AgentProcess, tracedEnv } from '../agent-process/agent-process.ts';
import type {
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
} from '../../actors/ports/relay.ts';
import { messageOf } from '../../values/errors.ts';
import {
  againKey,
  answeredInput,
  ASK_USER_QUESTION,
  endOf,
  questionsIn,
  read,
  tokensOf,
  toolOf,
  type ClaudeQuery,
  type Result,
  type Said,
} from './mapping.ts';
import { isPutOff, type Deferred, type Kept, type SessionFile } from './session-file.ts';

interface ClaudeSessionOptions {
  readonly name: string;
  readonly query: ClaudeQuery;
  readonly start: RelayStart;
  readonly file: SessionFile;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly marks: string;
  /** The folder with Claude's files. */
  readonly configFolder: string;
  readonly unasked: ReadonlySet<string>;
  /** Whether Claude's rules may still ask about the `unasked` tools. */
  readonly followsRules: boolean;
  readonly more: Readonly<Record<string, unknown>>;
  readonly graceMs: number;
  removeFolder(): void;
}

interface Turn {
  /** The current stretch of work; null while a call is deferred. */
  work: { interrupt(): void; readonly process: () => AgentProcess | null } | null;
  /** The deferred call, and the answers to its questions so far. */
  asked: { readonly call: Deferred; readonly answers: RelayAnswer[] } | null;
  /** Calls that are waiting in a running process: Claude cannot defer parallel calls. */
  readonly waiting: Map<string, (answer: RelayAnswer) => void>;
  readonly started: Set<string>;
  isCancelling: boolean;
  readonly ended: PromiseWithResolvers<RelayRelease>;
}

interface HookInput {
  readonly tool_name: string;
  readonly tool_input: unknown;
  readonly tool_use_id: string;
}

type Decision = 'allow' | 'deny' | 'defer';
const NO_SESSION = 'No conversation found';
const TAKEN_BACK = 'The request was taken back. Do not do it.';
const UNANSWERED = 'Nobody answered. Go on without it.';
const CANCELLED: RelayAnswer = { type: 'cancelled' };
const PERMITTED: RelayAnswer = { type: 'permitted' };
/** The maximum number of lasting permissions per session. */
const MAX_PERMITTED = 100;

export class ClaudeSession implements RelaySession {
  readonly id: string;
  readonly isRunning: boolean;
  readonly #options: ClaudeSessionOptions;
  #kept: Kept;
  #turn: Turn | null = null;
  #isOver = false;
  #cancelGrace: (() => void) | null = null;
  /** The answers to deferred calls. */
  readonly #answers = new Map<string, readonly RelayAnswer[]>();

  constructor(options: ClaudeSessionOptions) {
    const { start, file } = options;
    this.#options = options;
    this.#kept = file.read() ?? {
      id: '',
      cost: 0,
      isBegun: false,
      deferred: null,
      answered: null,
      permitted: [],
    };
    this.id = this.#kept.id;
    const { deferred } = this.#kept;
    this.isRunning = start.resume !== undefined && deferred !== null;
    if (!this.isRunning || !deferred) return;
    const turn = this.#begin();
    // The relay's caller must receive the session before the session's events.
    start.scheduler.yieldThen(() => {
      if (this.#turn === turn) this.#ask(turn, deferred);
    });
  }

  prompt({ text }: RelayPrompt): void {
    if (!this.#isOver) this.#workOn(this.#begin(), text);
  }

  /** The relay declares that it does not support steering. */
  steer(): void {}

  answer(requestId: string, answer: RelayAnswer): void {
    const turn = this.#turn;
    if (!turn || turn.isCancelling) return;
    const waiting = turn.waiting.get(requestId);
    turn.waiting.delete(requestId);
    waiting?.(answer);
    const { asked } = turn;
    if (!asked || requestId !== requestIdOf(asked.call, asked.answers.length)) return;
    asked.answers.push(answer);
    if (this.#askNext(turn)) return;
    turn.asked = null;
    this.#answers.set(asked.call.id, asked.answers);
    const permitted = this.#remembered(asked.call, asked.answers[0]);
    this.#workOn(turn, null, { deferred: null, answered: asked.call, permitted });
  }

  interrupt(): void {
    const turn = this.#turn;
    if (!turn || turn.isCancelling) return;
    const { start, graceMs } = this.#options;
    turn.isCancelling = true;
    if (!turn.work) {
      this.#end(turn, { type: 'turn_ended', reason: 'cancelled' });
      return;
    }
    const { work } = turn;
    this.#cancelGrace = start.scheduler.schedule(() => work.process()?.signal('SIGKILL'), graceMs);
    for (const settle of turn.waiting.values()) settle(CANCELLED);
    turn.waiting.clear();
    work.interrupt();
  }

  async release(why: 'ended' | 'suspended'): Promise<RelayRelease> {
    const turn = this.#turn;
    this.#isOver = true;
    let how: RelayRelease = 'idle';
    if (turn && (why === 'ended' || turn.work)) {
      this.interrupt();
      how = await turn.ended.promise;
    }
    this.#turn = null;
    if (why === 'ended') this.#options.removeFolder();
    return how;
  }

  #begin(): Turn {
    const turn: Turn = {
      work: null,
      asked: null,
      waiting: new Map(),
      started: new Set(),
      isCancelling: false,
      ended: Promise.withResolvers(),
    };
    this.#turn = turn;
    return turn;
  }

  /**
   * Writes a change to the session's file, then continues the work. If a write fails, the session ends, because its
   * folder may be gone.
   */
  #workOn(turn: Turn, text: string | null, change: Partial<Kept> = {}): void {
    const work = async (): Promise<void> => {
      if (Object.keys(change).length > 0) this.#keep(change);
      await this.#work(turn, text);
    };
    work().catch((error: unknown) => {
      turn.work = null;
      if (this.#turn === turn) this.#close(turn, messageOf(error));
      else turn.ended.resolve('killed');
    });
  }

  /** Starts a process that handles a new message or continues with the answered call. */
  async #work(turn: Turn, text: string | null): Promise<void> {
    // CLAUDE-SESSION-2
    if (text !== null) this.#recall();
    const isStale = text !== null && this.#kept.deferred !== null;
    const settled = Promise.withResolvers<boolean>();
    const over = Promise.withResolvers<void>();
    let child: AgentProcess | null = null;
    let result: Result | null = null;
    let failure = '';
    let isSettled = !isStale;
    if (isSettled) settled.resolve(true);
    try {
      const running = this.#start(turn, messages(text, settled.promise, over.promise), (begun) => {
        child = begun;
      });
      turn.work = {
        interrupt: () => {
          settled.resolve(false);
          running.interrupt().catch((error: unknown) => this.#options.start.report(error));
        },
        process: () => child,
      };
      for await (const message of running)
        for (const said of read(message)) {
          if (said.type === 'result' && !isSettled) {
            isSettled = true;
            this.#keep({ deferred: null });
            settled.resolve(true);
          } else if (said.type === 'result') {
            ({ result } = said);
            over.resolve();
          } else if (isSettled) this.#said(turn, said);
        }
    } catch (error) {
      failure = messageOf(error);
    } finally {
      over.resolve();
    }
    const process = child as AgentProcess | null;
    const { start, graceMs } = this.#options;
    const isKilled = (await process?.end(start.scheduler, graceMs)) ?? false;
    turn.work = null;
    if (this.#turn !== turn) return;
    if (failure.includes(NO_SESSION) && text !== null && this.#kept.isBegun && !turn.isCancelling) {
      // The process was killed before it had stored the session.
      this.#keep({ isBegun: false, deferred: null });
      await this.#work(turn, text);
      return;
    }
    const exit = (await process?.exited)?.message ?? '';
    await this.#worked(turn, result, [failure, exit].filter((part) => part !== '').join('; '));
    if (isKilled) turn.ended.resolve('killed');
  }

  /** Handles the exit of a process. */
  async #worked(turn: Turn, result: Result | null, failure: string): Promise<void> {
    for (const requestId of turn.waiting.keys()) this.#send({ type: 'withdrawn', requestId });
    turn.waiting.clear();
    if (!result) {
      if (turn.isCancelling && !this.#isOver)
        this.#close(turn, `it did not stop in time: ${failure}`);
      else this.#close(turn, failure);
      return;
    }
    const cost = Math.max(0, (result.total_cost_usd ?? 0) - this.#kept.cost);
    this.#keep({ cost: this.#kept.cost + cost });
    this.#send({ type: 'usage', ...tokensOf(result), cost });
    const { deferred_tool_use: deferred } = result;
    if (turn.isCancelling) {
      if (deferred) this.#keep({ deferred });
      this.#end(turn, { type: 'turn_ended', reason: 'cancelled' });
    } else if (deferred) {
      this.#keep({ deferred });
      this.#ask(turn, deferred);
    } else {
      const { reason, message } = endOf(result);
      this.#end(turn, {
        type: 'turn_ended',
        reason,
        ...(message === '' ? {} : { message }),
      });
    }
  }

  /** If a process is killed, it may lose an answer. The call is then still deferred. */
  #recall(): void {
    const { id, deferred, answered } = this.#kept;
    if (!answered) return;
    const isLost = !deferred && isPutOff(this.#options.configFolder, id, answered.id);
    this.#keep({ answered: null, ...(isLost ? { deferred: answered } : {}) });
  }

  #start(turn: Turn, prompt: AsyncIterable<unknown>, spawned: (child: AgentProcess) => void) {
    const { query, cwd, marks, more, start } = this.#options;
    const env = { ...tracedEnv(start), ...this.#options.env };
    const { id, isBegun } = this.#kept;
    this.#keep({ isBegun: true });
    const options = {
      settingSources: [],
      ...more,
      cwd,
      env,
      permissionMode: 'default',
      // The environment of MCP servers contains secrets, which must not appear on a command line.
      mcpServersDelivery: 'initialize',
      ...(isBegun ? { resume: id } : { sessionId: id }),
      hooks: {
        PreToolUse: [{ hooks: [(input: HookInput) => this.#decide(turn, input)] }],
      },
      canUseTool: (
        name: string,
        input: unknown,
        { toolUseID, signal }: { readonly toolUseID: string; readonly signal: AbortSignal },
      ) => this.#permit(turn, { id: toolUseID, name, input }, signal),
      spawnClaudeCodeProcess: ({
        command,
        args,
      }: {
        readonly command: string;
        readonly args: readonly string[];
      }) => {
        const child = AgentProcess.begin({ command, args, cwd, env, marks });
        spawned(child);
        return child.child;
      },
    };
    // `ClaudeQuery` declares no parameters so that it accepts the `query` of any SDK version.
    return query({ prompt, options } as never);
  }

  /** The hook that runs before a tool. CLAUDE-SESSION-1 */
  async #decide(turn: Turn, { tool_name: name, tool_input: input, tool_use_id: id }: HookInput) {
    // Claude's text before the call has to be read first.
    await new Promise<void>((resolve) => {
      this.#options.start.scheduler.yieldThen(resolve);
    });
    if (this.#kept.deferred?.id === id || this.#turn !== turn || turn.isCancelling)
      return decision('deny', TAKEN_BACK);
    const [answer] = this.#answers.get(id) ?? [];
    if (name === ASK_USER_QUESTION) return answer ? {} : decision('defer');
    const isPermitted = this.#isPermitted({ id, name, input });
    if (!answer && !isPermitted && !this.#options.unasked.has(name)) return decision('defer');
    if (answer && answer.type !== 'permitted') return decision('deny', refusalOf(answer));
    this.#started(turn, { id, name, input });
    return answer || isPermitted || !this.#options.followsRules ? decision('allow') : {};
  }

  /**
   * Handles Claude's permission requests: supplies the answers to a question, and asks the user about calls that cannot
   * be deferred.
   */
  async #permit(turn: Turn, call: Deferred, signal: AbortSignal): Promise<object> {
    const { id, name, input } = call;
    const questions = name === ASK_USER_QUESTION ? questionsIn(input) : [];
    let answers = this.#isPermitted(call) ? [PERMITTED] : this.#answers.get(id);
    if (!answers) {
      const asked: RelayAnswer[] = [];
      for (let at = 0; at < Math.max(1, questions.length); at += 1)
        asked.push(await this.#wait(turn, call, at, signal));
      answers = asked;
    }
    const [answer = CANCELLED] = answers;
    if (name === ASK_USER_QUESTION)
      return answers.some(({ type }) => type === 'answered')
        ? { behavior: 'allow', updatedInput: answeredInput(input, answers) }
        : { behavior: 'deny', message: UNANSWERED };
    if (answer.type !== 'permitted') return { behavior: 'deny', message: refusalOf(answer) };
    // CLAUDE-SESSION-3
    if (answer.lasting === true) this.#keep({ permitted: this.#remembered(call, answer) });
    this.#started(turn, call);
    return { behavior: 'allow', updatedInput: input };
  }

  /** Returns the lasting permissions, including the one from this answer if it is lasting. CLAUDE-SESSION-3 */
  #remembered({ name, input }: Deferred, answer: RelayAnswer | undefined): string[] {
    const { permitted } = this.#kept;
    if (answer?.type !== 'permitted' || answer.lasting !== true) return permitted;
    const known = new Set(permitted).add(againKey(name, input));
    return [...known].slice(-MAX_PERMITTED);
  }

  #isPermitted({ name, input }: Deferred): boolean {
    return name !== ASK_USER_QUESTION && this.#kept.permitted.includes(againKey(name, input));
  }

  /** Asks while the process is waiting. */
  #wait(turn: Turn, call: Deferred, at: number, signal: AbortSignal): Promise<RelayAnswer> {
    if (this.#turn !== turn || turn.isCancelling || signal.aborted)
      return Promise.resolve(CANCELLED);
    const requestId = requestIdOf(call, at);
    return new Promise((resolve) => {
      turn.waiting.set(requestId, resolve);
      signal.addEventListener(
        'abort',
        () => {
          if (turn.waiting.delete(requestId)) this.#send({ type: 'withdrawn', requestId });
          resolve(CANCELLED);
        },
        { once: true },
      );
      this.#send(eventOf(call, at));
    });
  }

  #started(turn: Turn, { id, name, input }: Deferred): void {
    if (turn.started.has(id)) return;
    turn.started.add(id);
    this.#send({ type: 'tool_started', toolId: id, ...toolOf(name, input) });
  }

  #said(turn: Turn, said: Exclude<Said, { readonly type: 'result' }>): void {
    if (turn.isCancelling || this.#turn !== turn) return;
    if (said.type === 'words') this.#send(said);
    else if (turn.started.delete(said.toolId)) this.#send(said);
  }

  #ask(turn: Turn, call: Deferred): void {
    turn.asked = { call, answers: [] };
    this.#askNext(turn);
  }

  /** Asks the deferred call's next question. Returns false if there is no next question. */
  #askNext(turn: Turn): boolean {
    const { asked } = turn;
    if (!asked) return false;
    const { call, answers } = asked;
    const { length } = call.name === ASK_USER_QUESTION ? questionsIn(call.input) : [call];
    if (answers.length >= Math.max(1, length)) return false;
    this.#send(eventOf(call, answers.length));
    return true;
  }

  #end(turn: Turn, event: RelayEvent): void {
    this.#turn = null;
    this.#stopGrace();
    this.#send(event);
    turn.ended.resolve('cancelled');
  }

  #close(turn: Turn, message: string): void {
    this.#turn = null;
    this.#stopGrace();
    this.#send({ type: 'closed', message: message === '' ? 'its process ended' : message });
    turn.ended.resolve('killed');
  }

  #stopGrace(): void {
    this.#cancelGrace?.();
    this.#cancelGrace = null;
  }

  #keep(change: Partial<Kept>): void {
    this.#kept = { ...this.#kept, ...change };
    this.#options.file.write(this.#kept);
  }

  #send(event: RelayEvent): void {
    if (!this.#isOver) this.#options.start.receive(event);
  }
}

async function* messages(
  text: string | null,
  settled: Promise<boolean>,
  over: Promise<void>,
): AsyncGenerator {
  if (!(await settled)) return;
  if (text !== null)
    yield { type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null };
  // Keeps the input open while Claude is working, because interrupting Claude requires an open input.
  await over;
}

function decision(permissionDecision: Decision, permissionDecisionReason?: string): object {
  const reason = permissionDecisionReason === undefined ? {} : { permissionDecisionReason };
  return {
    hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...reason },
  };
}

function refusalOf(answer: RelayAnswer): string {
  if (answer.type !== 'denied') return UNANSWERED;
  return answer.words === '' ? 'The user did not permit it.' : `Not permitted: ${answer.words}`;
}

/** A call has the same ids in all processes. */
function requestIdOf({ id }: Deferred, at: number): string {
  return at === 0 ? id : `${id}:${at}`;
}

function eventOf(call: Deferred, at: number): RelayEvent {
  const requestId = requestIdOf(call, at);
  const question = call.name === ASK_USER_QUESTION ? questionsIn(call.input)[at] : undefined;
  if (question) return { type: 'question', requestId, ...question };
  const tool = toolOf(call.name, call.input);
  const lasting = `${tool.title}, as often as it comes, until this task has ended`;
  return { type: 'permission', requestId, toolId: call.id, lasting, ...tool };
}
