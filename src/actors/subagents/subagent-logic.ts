// A subagent as XState actor logic: `createActor`, `invoke`, `spawn`, `sendTo`, `waitFor`, `useSelector`, `inspect`,
// `getPersistedSnapshot` and `actor.send` work as with any other logic.
//
// Owns:     the actor's snapshot, and the conversion of events into commands for the run.
// Does not: run the subagent (run-subagent.ts does). An event is first written to the subagent's mailbox and journal,
//           and then changes the snapshot. Only an answer closes its question immediately.
//
// Invariants
//   SUBAGENT-LOGIC-1. Code outside the actor can send it only an answer, a message or a cancellation. Any other event,
//       or an event without an effect, is emitted as `refused` and does not change anything.
//   SUBAGENT-LOGIC-2. The snapshot is plain JSON, apart from its methods. If the run has an `id`, an actor that another
//       process restores from the snapshot resumes the same run from its journal, however old the snapshot is.
//   SUBAGENT-LOGIC-3. Stopping an actor cancels its run, unless `leave` has aborted. In that case, the run is
//       suspended.

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

/** The task of an actor's subagent. It is plain JSON because it is part of the snapshot. */
export interface SubagentActorInput extends Pick<RunSubagentOptions, 'id' | 'by' | 'traceparent'> {
  /** The task: a text, or the subagent's declared inputs. */
  readonly task: RunTask | string;
}

/** The events that may be sent to a subagent's actor. */
export type SubagentActorEvent =
  /** Answers the question with this `requestId`. */
  | ({
      readonly type: 'answer';
      readonly requestId: string;
      readonly answer: ClientAnswer;
    } & VouchedFor)
  /** A message from the program, which the model reads in its next call. */
  | ({ readonly type: 'message'; readonly text: string } & RunMessageOptions)
  /** Cancels the run. The default `reason` is `cancelled`. */
  | { readonly type: 'cancel'; readonly reason?: string };

/** The context of a subagent's actor: its work, and the questions that are waiting for an answer. */
export interface SubagentActorContext {
  /** The id of the run, or null if the run ends with the process. */
  readonly id: string | null;
  /** The `name` in the subagent's configuration. */
  readonly name: string;
  /** The title of the work. */
  readonly title: string;
  /** The current model step, starting at 1, or 0 before the first step. */
  readonly step: number;
  /** The maximum number of model steps. */
  readonly maxSteps: number;
  /** The latest progress, or null if there is none. */
  readonly progress: string | null;
  /**
   * The open questions and approvals of the subagent and its descendants, oldest first.
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

/** Options of `runSubagent` that cannot be passed to an actor. */
const OF_RUNS = ['id', 'by', 'traceparent', 'engine', 'abortSignal', 'onQuestion'] as const;

/** The options of `subagentLogic`. */
export interface SubagentLogicOptions extends Omit<RunSubagentOptions, (typeof OF_RUNS)[number]> {
  /**
   * The signal that the process is about to exit. Once it aborts, runs with an `id` are suspended, so that an actor
   * with the same `id` can resume them. Stopping their actors then does not cancel the runs. @defaultValue none:
   * stopping an actor cancels its run
   */
  readonly leave?: AbortSignal;
}

/** A subagent as XState actor logic, whose output is the subagent's outcome. */
export type SubagentLogic<Output = unknown> = ActorLogic<
  SubagentActorSnapshot<Output>,
  SubagentActorEvent,
  SubagentActorInput,
  AnyActorRef['system'],
  ActorRefusal
>;

type Shot = SubagentActorSnapshot;
type Scope = ActorScope<Shot, SubagentActorEvent, AnyActorRef['system'], ActorRefusal>;
/** The stored part of a snapshot. */
type Kept = Snapshot<Outcome> & Pick<Shot, 'value' | 'context' | 'input'>;

/** A question that is waiting for an answer. */
interface Asked {
  readonly question: AskedQuestion;
  settle(answer: ProgramAnswer): void;
}

/** The run and the open questions of an actor that was started. */
interface Live {
  /** Null while an earlier run with the same id is still ending or being suspended. */
  started: StartedRun | null;
  readonly asked: Map<string, Asked>;
  /** The reason for cancelling a run before it starts, or null if it is not cancelled. */
  cancelled: string | null;
  /** Whether the actor was stopped or the process is about to exit, so that the snapshot no longer changes. */
  isOver: boolean;
}

const inputSchema = z.strictObject({
  task: taskSchema,
  id: scopeName.optional(),
  // `startRun` validates the options that follow.
  by: z.unknown().optional(),
  traceparent: z.string().optional(),
} satisfies ChecksOf<SubagentActorInput>);

/**
 * Returns a subagent as XState actor logic. The actor has the subagent's states: `spawning`, `ready`, `running`,
 * `waiting_for_input`, `waiting_for_children`, `sleeping`, and the final states `completed`, `failed` and `cancelled`. In a final
 * state the actor is done, and its output is the outcome.
 * @throws {ConfigurationError} if the configuration or an option is invalid.
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
  /** How each event of the run changes the snapshot. Events from code outside the run are not included. */
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
      // The subagent's end is shown only together with its outcome.
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
    // The earlier run is ending or being suspended.
    void earlier.result.then(start).catch((error: unknown) => {
      move('subagent.unstarted', () => ({ status: 'error', error }));
    });
  }

  /** Returns why an event would have no effect now, or null if it would have an effect. */
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

  /**
   * Executes an event. Returns the immediate changes to the snapshot, or a promise for the reason why the event has no
   * effect.
   */
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
        // The snapshot changes immediately, because a question accepts only one answer.
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
      // The run repeats its questions with the same ids.
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
