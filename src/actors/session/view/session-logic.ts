// A session as XState actor logic: `createActor`, `invoke`, `spawn`, `sendTo`, `waitFor`, `useSelector`, `inspect` and
// `getPersistedSnapshot` work as with any other logic.
//
// Owns:     the actor's snapshot.
// Does not: run the session, or decide what effect an event has (base-session.ts does).
//
// Invariants
//   SESSION-LOGIC-1. Code outside the session can send only user commands to it. Any other event, or a command without
//       an effect, is emitted as `refused` and changes nothing.
//   SESSION-LOGIC-2. The snapshot immediately shows an answered question as `answered`, so that a machine that answers
//       in `onSnapshot` answers only once. If the answer is refused, the next change shows the question as open again.
//   SESSION-LOGIC-3. Stopping an actor closes its session, unless `leave` has aborted. In that case, the session is
//       suspended.

import type { ActorLogic, ActorScope, AnyActorRef, AnyEventObject, Snapshot } from 'xstate';
import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../values/checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { shown } from '../../../values/plain-checks.ts';
import type { SessionActorEvent } from '../../contracts/session-command.ts';
import {
  emptySessionState,
  type ConnectionState,
  type QuestionView,
  type SessionEvent,
  type SessionState,
} from '../../contracts/session-views.ts';
import { below, knock, type ActorRefusal, type Door } from '../../runtime/actor-tree.ts';
import { BaseSession, doorOf } from './base-session.ts';

/** The output of a session's actor: how the session ended. */
export interface SessionEnd {
  /** The error that ended the session, or null if it was closed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** The last state of the session. */
  readonly state: SessionState;
}

/** The snapshot of a session's actor. */
export type SessionActorSnapshot<Input = unknown> = Snapshot<SessionEnd> & {
  readonly value: ConnectionState;
  /** The state in `session.store`. */
  readonly context: SessionState;
  readonly input: Input;
  /** Returns whether the actor is in this state. */
  matches(value: ConnectionState): boolean;
};

/** The options of `sessionLogic`. */
export interface SessionLogicOptions {
  /**
   * The signal that the process is about to exit. Once it aborts, the session is suspended, and stopping its actor does
   * not close it. To resume the session from its journal, start an actor whose `open` creates a session with the same
   * `sessionId`.
   * @defaultValue none: stopping an actor closes its session
   */
  readonly leave?: AbortSignal;
}

/** A session as XState actor logic. The output of the actor says how the session ended. */
export type SessionLogic<Input = unknown> = ActorLogic<
  SessionActorSnapshot<Input>,
  SessionActorEvent,
  Input,
  AnyActorRef['system'],
  SessionEvent | ActorRefusal
>;

/** The sessions of started actors. */
interface Live {
  readonly door: Door;
  readonly id: string;
  /** The questions whose answer is still being processed. */
  readonly answered: Set<string>;
  /** Called when the actor is stopped. */
  leave(): void;
}

/** Returns a copy of the state in which these questions are answered. */
function withAnswered(state: SessionState, answered: ReadonlySet<string>): SessionState {
  if (answered.size === 0) return state;
  const questions = state.questions.map((question): QuestionView => {
    return answered.has(question.requestId) ? { ...question, state: 'answered' } : question;
  });
  return { ...state, questions };
}

const optionsSchema = z.strictObject({
  leave: z.instanceof(AbortSignal).optional(),
} satisfies ChecksOf<SessionLogicOptions>);

/**
 * Returns a session as XState actor logic. The actor opens the session with the input, starts it, and exposes its
 * state: `value` is the state of the connection, and `context` is the state of `session.store`. The actor emits the
 * session's events. When the session is closed, the actor is done, and its output says how the session ended. If the
 * session cannot be started, the actor fails with the reason.
 * @param open Creates the session, with a `sessionId` that allows it to be resumed.
 * @throws {ConfigurationError} if an argument is invalid.
 */
export function sessionLogic<Input>(
  open: (input: Input) => BaseSession,
  options: SessionLogicOptions = {},
): SessionLogic<Input> {
  type Shot = SessionActorSnapshot<Input>;
  /** The stored part of a snapshot. */
  type Kept = Omit<Shot, 'matches'>;
  type Scope = ActorScope<
    Shot,
    SessionActorEvent,
    AnyActorRef['system'],
    SessionEvent | ActorRefusal
  >;
  check('sessionLogic(open)', aFunction, open);
  const { leave } = check('sessionLogic(open, options)', optionsSchema, options);
  const lives = new WeakMap<object, Live>();
  /** How each event of the session changes the snapshot. Events from outside the session are not included. */
  const moves = new WeakMap<object, (before: Kept) => Partial<Kept>>();

  const shot = (kept: Kept): Shot =>
    ({ ...kept, matches: (value: ConnectionState) => value === kept.value }) as Shot;

  function begin({ self, emit }: Scope, input: Input): void {
    if (leave?.aborted) return;
    const session: unknown = below(self, () => open(input));
    if (!(session instanceof BaseSession))
      throw new ConfigurationError(
        'INVALID_OPTION',
        `sessionLogic: expected \`open\` to return a session, such as a TextSession, got ${shown(session)}`,
      );
    let error: SessionEnd['error'] = null;
    const answered = new Set<string>();
    const move = (type: string, change: (before: Kept) => Partial<Kept>): void => {
      const event = { type } as { readonly type: string } as SessionActorEvent;
      if (self.getSnapshot().status !== 'active') return;
      moves.set(event, change);
      self.send(event);
    };
    const follow = (): void => {
      const { context } = session.store.getSnapshot();
      const { connection: value } = context;
      move(`session.${value}`, () => ({ value, context: withAnswered(context, answered) }));
    };
    const subscriptions: { unsubscribe(): void }[] = [];
    const stopFollowing = (): void => {
      leave?.removeEventListener('abort', suspend);
      for (const subscription of subscriptions) subscription.unsubscribe();
    };
    const suspend = (): void => {
      stopFollowing();
      void session.suspend();
    };
    subscriptions.push(
      session.store.subscribe(follow),
      session.events.subscribe({
        next(event) {
          if (event.type === 'session.ended') error = event.error;
          emit(event);
        },
        complete() {
          follow();
          stopFollowing();
          // A suspended session has not ended, because another actor can resume it.
          if (session.store.getSnapshot().context.connection === 'closed')
            move('session.ended', ({ context: state }) => ({
              status: 'done',
              output: { error, state },
            }));
        },
      }),
    );
    lives.set(self, {
      door: doorOf(session),
      id: session.id,
      answered,
      leave() {
        stopFollowing();
        if (!leave?.aborted) void session.close();
      },
    });
    leave?.addEventListener('abort', suspend, { once: true });
    // An app that follows the snapshots displays the session, and therefore counts as a listener.
    session.listen();
    // Reading `session.actor` also creates the actors of the session's parts.
    void session.actor;
    follow();
    session.start().catch((reason: unknown) => {
      if (leave?.aborted) return;
      stopFollowing();
      move('session.unstarted', () => ({ status: 'error', error: reason }));
    });
  }

  return {
    getInitialSnapshot: (_scope, input) =>
      shot({
        status: 'active',
        output: undefined,
        error: undefined,
        value: 'created',
        context: emptySessionState,
        input,
      }),

    // The context is restored from the journal.
    getPersistedSnapshot: ({ matches: _matches, context: _context, ...kept }) => kept,

    restoreSnapshot: (persisted) => shot({ ...(persisted as Kept), context: emptySessionState }),

    start(snapshot, scope) {
      if (snapshot.status === 'active') begin(scope, snapshot.input);
    },

    transition(before, event, { self, emit }) {
      const change = moves.get(event);
      if (change) {
        moves.delete(event);
        return shot({ ...before, ...change(before) });
      }
      const live = lives.get(self);
      if ((event as AnyEventObject).type === 'xstate.stop') {
        live?.leave();
        return shot({ ...before, status: 'stopped', output: undefined, error: undefined });
      }
      if (!live) return before;
      const { door, id, answered } = live;
      const requestId = event.type === 'answer' ? event.requestId : null;
      const settled = (): void => void (requestId !== null && answered.delete(requestId));
      if (!knock(door, id, event, emit, settled) || requestId === null) return before;
      answered.add(requestId);
      return shot({ ...before, context: withAnswered(before.context, answered) });
    },
  };
}
