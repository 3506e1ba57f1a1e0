// A user's commands to a session: from a client, from the inspector, or as events sent to the session's actor.

import type { MessageMode } from '../../machines/index.ts';
import type { BudgetLimits } from './config.ts';
import type { VouchedFor } from './identity.ts';

/** An answer for `session.answer`, in one of three forms. */
export type ClientAnswer =
  /** The id of an option. */
  | { readonly optionId: string }
  | { readonly text: string }
  /**
   * `input`: the call runs with these arguments instead. `lasts`: the approval also covers later calls, until the
   * subagent that asked has ended (`task`) or the session has ended. `approved: false` revokes a lasting approval.
   */
  | {
      readonly approved: boolean;
      readonly input?: unknown;
      readonly lasts?: 'task' | 'session';
    };

/** A user's actions in a client: messages, answers, cancellations and acknowledgements. */
export type SessionCommand =
  /** The user's words. */
  | {
      readonly type: 'send';
      readonly text: string;
      /** The sender's W3C trace context. */
      readonly traceparent?: string;
    }
  | { readonly type: 'answer'; readonly requestId: string; readonly answer: ClientAnswer }
  | { readonly type: 'cancel'; readonly subagentId: string; readonly reason?: string }
  | {
      readonly type: 'message';
      readonly subagentId: string;
      readonly text: string;
      /** When the subagent reads the message. @defaultValue 'steer' */
      readonly mode?: MessageMode;
    }
  /**
   * Raises limits of a subagent's budget to new totals, or the session's own limits if the id is null; only for the
   * role `operator`.
   */
  | { readonly type: 'raise'; readonly subagentId: string | null; readonly limits: BudgetLimits }
  | { readonly type: 'dismiss'; readonly deliveryId: string }
  | { readonly type: 'shown'; readonly deliveryId: string }
  | { readonly type: 'question.shown'; readonly requestId: string };

/** The events that may be sent to a session's actor. `by`: the sender, if the app vouches for one. */
export type SessionActorEvent = SessionCommand & VouchedFor;
