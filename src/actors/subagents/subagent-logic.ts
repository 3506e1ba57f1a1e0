// A subagent as XState actor logic: `createActor`, `invoke`, `spawn`, `sendTo`, `waitFor`, `useSelector`, `inspect`,
// `getPersistedSnapshot` and `actor.send` work as with any other logic.
//
// Owns:     the actor's snapshot, and the conversion of events into commands to the run.
// Does not: run the subagent (run-subagent.ts does). An event goes to the subagent's mailbox and journal, and the
//           snapshot changes afterwards; only an answer closes its question at once.
//
// Invariants
//   SUBAGENT-LOGIC-1. Outsiders can only send an answer, a message or a cancellation. Any other event, or an event
//       without an effect, is emitted as `refused` and changes nothing.
//   SUBAGENT-LOGIC-2. The snapshot is plain JSON, apart from its methods. With an `id`, an actor restored from it in
//       another process resumes the same run from its journal, however old the snapshot is.
//   SUBAGENT-LOGIC-3. Stopping an actor cancels its run, unless `leave` has aborted: the run is then left to its journal.

import type { ActorLogic, ActorScope, AnyActorRef, Snapshot } from 'xstate';
import { z } from 'zod';
import { check, scopeName, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError, isA, OffstageError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';
import { shown } from '../../values/plain-checks.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { VouchedFor } from '../contracts/identity.ts';
import type { ClientAnswer } from '../contracts/session-command.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import type { SubagentState, SubagentView } from '../contracts/session-views.ts';
import { below, isOfXState, type ActorRefusal } from '../runtime/actor-tree.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import { answerOf, type ProgramAnswer } from './program-ports.ts';
import { requestDigest } from './refusal.ts';
import {
  checkMessage,
  checkRun,
  runUnder,
  startRun,
  taskSchema,
  type RunMessageOptions,
  type RunSubagentOptions,
  type RunTask,
  type StartedRun,
} from './run-subagent.ts';

/** The task of a subagent's actor. Plain JSON, as part of the snapshot. */
export interface SubagentActorInput extends Pick<RunSubagentOptions, 'id' | 'by' | 'traceparent'> {
  /** The task, as text or with the subagent's declared inputs. */
  readonly task: RunTask | string;
}

/** The events that may be sent to a subagent's actor. */
export type SubagentActorEvent =
  /** Answers the question of this `requestId`. */
  | ({
      readonly type: 'answer';
      readonly requestId: string;
      readonly answer: ClientAnswer;
    } & VouchedFor)
  /** A message from the program, which the next model call reads. */
  | ({ readonly type: 'message'; readonly text: string } & RunMessageOptions)
  /** Cancels the run; the default `reason` is `cancelled`. */
  | { readonly type: 'cancel'; readonly reason?: string };

/** The context of a subagent's actor: its work, and the waiting questions. */
export interface SubagentActorContext {
  /** The id of the run; null if the run ends with the process. */
  readonly id: string | null;
  /** The `name` of its configuration. */
  readonly name: string;
  /** A title of the work. */
  readonly title: string;
  /** The current model step, from 1; 0 before the first step. */
  readonly step: number;
  /** The maximum number of model steps. */
  readonly maxSteps: number;
  /** The latest progress; null if there is none. */
  readonly progress: string | null;
  /**
   * The questions and approvals that wait for an answer, from the subagent and those below it, in the order in which
   * they were asked.
   */
  readonly questions: readonly AskedQuestion[];
}

/** The snapshot of a subagent's actor. */
export type SubagentActorSnapshot<Output = unknown> = Snapshot<Outcome<Output>> & {
  readonly value: SubagentState;
  readonly context: SubagentActorContext;
  readonly input: SubagentActorInput;
  /** Returns whether the actor is in this state. */
  matches(value: SubagentState): boolean;
  /** Returns whether the event would be accepted now. */
  can(event: SubagentActorEvent): boolean;
};

/** Options of `runSubagent` that an actor does not accept. */
const OF_RUNS = ['id', 'by', 'traceparent', 'engine', 'abortSignal', 'onQuestion'] as const;

/** The options of `subagentLogic`. */
export interface SubagentLogicOptions extends Omit<RunSubagentOptions, (typeof OF_RUNS)[number]> {
  /**
   * Aborts when the process leaves: runs with an `id` are left to their journal, from which an actor with the same `id`
   * resumes them, and stopping their actors cancels nothing. @defaultValue none: stopping an actor cancels its run
   */
  readonly leave?: AbortSignal;
}

/** A subagent as XState actor logic, whose output is its outcome. */
export type SubagentLogic<Output = unknown> = ActorLogic<
  SubagentActorSnapshot<Output>,
  SubagentActorEvent,
  SubagentActorInput,
  AnyActorRef['system'],
  ActorRefusal
>;

type Shot = SubagentActorSnapshot;
type Scope = ActorScope<Shot, SubagentActorEvent, AnyActorRef['system'], ActorRefusal>;
/** The data of a snapshot. */
type Kept = Snapshot<Outcome> & Pick<Shot, 'value' | 'context' | 'input'>;

/** A question that is open. */
interface Asked {
  readonly question: AskedQuestion;
  settle(answer: ProgramAnswer): void;
}

/** The run and the open questions of a started actor. */
interface Live {
  /** Null until the run starts: an earlier run with its id is still leaving. */
  started: StartedRun | null;
  readonly asked: Map<string, Asked>;
  /** Why a run is cancelled before it starts; null if it is not cancelled. */
  cancelled: string | null;
  /** Whether the actor was stopped, or the process leaves: the snapshot no longer changes. */
  isOver: boolean;
}

const inputSchema = z.strictObject({
  task: taskSchema,
  id: scopeName.optional(),
  // `startRun` checks the following.
  by: z.unknown().optional(),
  traceparent: z.string().optional(),
} satisfies ChecksOf<SubagentActorInput>);

/**
 * Returns a subagent as XState actor logic. The actor has the subagent's states: `spawning`, `ready`, `running`,
 * `waiting_for_input`, `waiting_for_children`, `sleeping`, and the final states `completed`, `failed` and `cancelled`. In a final
 * state the actor is done, and its output is the outcome.
 * @throws {ConfigurationError} if the configuration or an option is wrong.
 */
export function subagentLogic(
  config: SubagentConfig,
  { leave, ...options }: SubagentLogicOptions,
): SubagentLogic {
  const where = 'subagentLogic(…, options)';
  check(`${where}.leave`, z.instanceof(AbortSignal).optional(), leave);
  checkRun('subagentLogic', config, options);
  const other = OF_RUNS.find((option) => Object.hasOwn(options, option));
  if (other !== undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `${where}.${other}: expected none: an actor has an input, events and a snapshot instead`,
    );
  const { name, maxSteps } = checkSubagentConfig(config, config.name);
  const lives = new WeakMap<object, Live>();
  /** The snapshot's changes, by the events of the run. Outsiders' events are not included. */
  const moves = new WeakMap<object, (before: Kept) => Partial<Kept>>();

  function begin({ self }: Scope, input: SubagentActorInput): void {
    const live: Live = { started: null, asked: new Map(), cancelled: null, isOver: false };
    lives.set(self, live);
    const move = (type: string, change: (before: Kept) => Partial<Kept>): void => {
      if (live.isOver) return;
      const event = { type } as { readonly type: string } as SubagentActorEvent;
      moves.set(event, change);
      self.send(event);
    };
    const showQuestions = (type: string): void =>
      move(type, ({ context }) => ({
        context: { ...context, questions: questionsOf(live.asked) },
      }));
    const onQuestion = async (
      question: AskedQuestion,
      signal: AbortSignal,
    ): Promise<ProgramAnswer> => {
      const { promise, resolve, reject } = Promise.withResolvers<ProgramAnswer>();
      live.asked.set(question.requestId, { question, settle: resolve });
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      showQuestions('question.asked');
      try {
        return await promise;
      } finally {
        if (live.asked.delete(question.requestId)) showQuestions('question.over');
      }
    };
    const changed = ({ parentId, state, endedAt, title, step, progress }: SubagentView): void => {
      // The end is reported with the outcome.
      if (parentId !== null || endedAt !== null) return;
      move(`subagent.${state}`, ({ context }) => ({
        value: state,
        context: { ...context, title, step, progress },
      }));
    };
    const end = (output: Outcome): void => {
      leave?.removeEventListener('abort', depart);
      const { status, steps: step } = output;
      const value = status === 'completed' || status === 'cancelled' ? status : 'failed';
      move(`subagent.${value}`, ({ context }) => ({
        status: 'done',
        output,
        value,
        context: { ...context, step, questions: [] },
      }));
    };
    const depart = (): void => {
      live.isOver = live.started === null || live.started.leave();
    };
    const { task, ...own } = input;
    const start = (): void => {
      if (leave?.aborted) live.isOver = true;
      if (live.isOver) return;
      leave?.addEventListener('abort', depart, { once: true });
      const run = { ...options, ...own, onQuestion };
      live.started = below(self, () => startRun(config, task, run, changed));
      const { cancel, result } = live.started.run;
      if (live.cancelled !== null) cancel(live.cancelled);
      void result.then(end);
    };
    const earlier =
      input.id === undefined
        ? null
        : runUnder(options.runtime, input.id, requestDigest(name, task));
    if (!earlier) return start();
    // The earlier run is ending, or leaving.
    void earlier.result.then(start).catch((error: unknown) => {
      move('subagent.unstarted', () => ({ status: 'error', error }));
    });
  }

  /** Returns why an event would have no effect now; null if it would have one. */
  function refusalOf(kept: Kept, event: unknown): OffstageError | null {
    const given: unknown = isRecord(event) ? event['type'] : event;
    if (kept.status !== 'active')
      return new ConfigurationError(
        'INVALID_STATE',
        `${name}: expected no event, its run has ended`,
      );
    switch (given) {
      case 'answer': {
        const { requestId, answer, by } = event as SubagentActorEvent & { type: 'answer' };
        const question = kept.context.questions.find((asked) => asked.requestId === requestId);
        if (!question)
          return new ConfigurationError(
            'NOT_FOUND',
            `${name}: expected the \`requestId\` of an open question, got ${shown(requestId)}`,
          );
        return errorOf(() => answerOf(question, isRecord(answer) ? { ...answer, by } : answer));
      }
      case 'message': {
        const { type: _, text, ...sent } = event as SubagentActorEvent & { type: 'message' };
        return errorOf(() => checkMessage(text, sent));
      }
      case 'cancel': {
        const { reason } = event as SubagentActorEvent & { type: 'cancel' };
        return errorOf(() => check(`${name}: cancel.reason`, z.string().optional(), reason));
      }
      default:
        return new ConfigurationError(
          'INVALID_EVENT',
          `${name}: expected an event \`answer\`, \`message\` or \`cancel\`, got ${shown(given)}`,
        );
    }
  }

  /** Executes an event. Returns the immediate changes, or a promise of the reason why the event has no effect. */
  function carryOut(
    kept: Kept,
    live: Live,
    event: SubagentActorEvent,
  ): Partial<Kept> | Promise<string | null> {
    const { started, asked } = live;
    switch (event.type) {
      case 'answer': {
        const { requestId, answer, by } = event;
        asked.get(requestId)?.settle({ ...answer, ...(by !== undefined && { by }) });
        asked.delete(requestId);
        // Changed at once, because a question accepts only one answer.
        return { context: { ...kept.context, questions: questionsOf(asked) } };
      }
      case 'message': {
        const { type: _, text, ...sent } = event;
        if (!started) return Promise.resolve('the run has not begun');
        return started.run
          .send(text, sent)
          .then((receipt) => (receipt.applied ? null : receipt.reason));
      }
      case 'cancel':
        if (started) started.run.cancel(event.reason);
        else live.cancelled = event.reason ?? 'cancelled';
        return {};
    }
  }

  const shot = (kept: Kept): Shot => ({
    ...kept,
    matches: (value) => value === kept.value,
    can: (event) => refusalOf(kept, event) === null,
  });

  return {
    getInitialSnapshot(_scope, given) {
      const input = check('subagentLogic: input', inputSchema, given) as SubagentActorInput;
      const { id = null, task } = input;
      const title = typeof task === 'string' ? task : task.description;
      const context = { id, name, title, step: 0, maxSteps, progress: null, questions: [] };
      return shot({
        status: 'active',
        output: undefined,
        error: undefined,
        value: 'spawning',
        context,
        input,
      });
    },

    getPersistedSnapshot: ({ matches: _matches, can: _can, ...kept }) => kept,

    restoreSnapshot(persisted) {
      const kept = persisted as Kept;
      const input = check(
        'subagentLogic: snapshot.input',
        inputSchema,
        kept.input,
      ) as SubagentActorInput;
      if (kept.status === 'active' && input.id === undefined)
        throw new ConfigurationError(
          'INVALID_STATE',
          `${name}: expected the snapshot of an actor whose input has an \`id\`, since only such a run outlives its process`,
        );
      // The run asks its questions again with the same ids.
      return shot({ ...kept, context: { ...kept.context, questions: [] } });
    },

    start(snapshot, scope) {
      if (snapshot.status === 'active') begin(scope, snapshot.input);
    },

    transition(before, event, { self, emit }) {
      const change = moves.get(event);
      if (change) return shot({ ...before, ...change(before) } as Kept);
      const live = lives.get(self);
      if ((event as { readonly type: string }).type === 'xstate.stop') {
        if (live && !live.isOver) {
          live.isOver = true;
          live.started?.run.cancel('its actor was stopped');
        }
        return shot({ ...before, status: 'stopped', output: undefined, error: undefined });
      }
      if (isOfXState(event)) return before;
      const refuse = (error: OffstageError): void => emit({ type: 'refused', event, error });
      const refusal = refusalOf(before, event);
      if (refusal) refuse(refusal);
      if (refusal || !live) return before;
      const carried = carryOut(before, live, event);
      if (!(carried instanceof Promise)) return shot({ ...before, ...carried } as Kept);
      void carried.then((reason) => {
        if (reason !== null && !live.isOver)
          refuse(new ConfigurationError('INVALID_STATE', `${name}: ${reason}`));
      });
      return before;
    },
  };
}

function questionsOf(asked: Live['asked']): readonly AskedQuestion[] {
  return [...asked.values()].map(({ question }) => question);
}

function errorOf(look: () => unknown): OffstageError | null {
  try {
    look();
    return null;
  } catch (error) {
    if (isA(error, OffstageError)) return error;
    throw error;
  }
}
