// A session as XState actor logic: `createActor`, `invoke`, `spawn`, `sendTo`, `waitFor`, `useSelector`, `inspect` and
// `getPersistedSnapshot` work as with any other logic.
//
// Owns:     the snapshot of the actor.
// Does not: run the session, or decide what an event does: the session does (base-session.ts).
//
// Invariants
//   SESSION-LOGIC-1. Outsiders move it by the commands of a user only. Any other event, and one that has no effect, is
//       emitted as `refused` and changes nothing.
//   SESSION-LOGIC-2. A question that was answered is `answered` in the snapshot at once, so that a machine that answers in
//       `onSnapshot` answers once. If the answer is refused, the question is open again with the next change.
//   SESSION-LOGIC-3. An actor that is stopped closes its session, unless `leave` has aborted: then the session is left to
//       its journal.

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

/** The output of the actor of a session: how it has ended. */
export interface SessionEnd {
  /** Why it ended by itself; null: it was closed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** The last state of the session. */
  readonly state: SessionState;
}

/** The snapshot of the actor of a session. */
export type SessionActorSnapshot<Input = unknown> = Snapshot<SessionEnd> & {
  readonly value: ConnectionState;
  /** The state of `session.store`. */
  readonly context: SessionState;
  readonly input: Input;
  /** Tells whether this is the state. */
  matches(value: ConnectionState): boolean;
};

/** The options of `sessionLogic`. */
export interface SessionLogicOptions {
  /**
   * Aborts when the process leaves: the session is suspended, an actor whose `open` makes a session of the same `sessionId`
   * continues it from its journal, and stopping this one closes nothing. @defaultValue none: an actor that is stopped
   * closes its session
   */
  readonly leave?: AbortSignal;
}

/** A session as actor logic of XState, whose output is its end. */
export type SessionLogic<Input = unknown> = ActorLogic<
  SessionActorSnapshot<Input>,
  SessionActorEvent,
  Input,
  AnyActorRef['system'],
  SessionEvent | ActorRefusal
>;

/** The session of an actor that was started. */
interface Live {
  readonly door: Door;
  readonly id: string;
  /** The questions whose answer is under way. */
  readonly answered: Set<string>;
  /** Its actor is stopped. */
  leave(): void;
}

/** Returns the state with these questions answered. */
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
 * Returns a session as actor logic of XState. Its actor opens the session with the input, starts it, and has its state:
 * `value` is that of the connection, `context` that of `session.store`. The events of the session are emitted. When the
 * session is closed, the actor is done, and its output says how it ended; if it cannot be started, the actor fails with the
 * reason.
 * @param open Makes the session, with the `sessionId` under which it is to be continued.
 * @throws {ConfigurationError} for an argument that is wrong.
 */
export function sessionLogic<Input>(
  open: (input: Input) => BaseSession,
  options: SessionLogicOptions = {},
): SessionLogic<Input> {
  type Shot = SessionActorSnapshot<Input>;
  /** The data of a snapshot. */
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
  /** The change that each event of the session makes. No event of an outsider is one of these. */
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
          // A session that was suspended has not ended: another one continues it.
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
    // Who follows the snapshots shows what the session says.
    session.listen();
    // With it, the actors of its parts are there.
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

    // Its state comes from its journal.
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
