// The commands of clients at the session that they are for: `offstage/serve` and the inspector carry them out alike.

import type { VouchedFor } from '../actors/contracts/identity.ts';
import type { MessageSent } from '../actors/contracts/service-types.ts';
import type { BaseSession } from '../actors/session/view/base-session.ts';
import { messageIn, type CommandFrame } from './protocol.ts';

/** The part of a session that commands need. */
export type CommandedSession = Pick<
  BaseSession,
  'sendText' | 'answer' | 'questionShown' | 'shown' | 'dismiss' | 'subagents' | 'committed'
>;

/**
 * Carries a command out, and returns the value of its receipt when the journal has what was asked for: a crash loses
 * nothing that has a receipt.
 * @throws {OffstageError} as the method of the session (rejects); {CancelledError} if the session leaves before.
 */
export async function carryOut(
  session: CommandedSession,
  frame: CommandFrame,
  by: VouchedFor,
): Promise<unknown> {
  const value = await valueOf(session, frame, by);
  // These two resolve no earlier than their entries are kept, and the session may have ended at once.
  if (frame.type !== 'send' && frame.type !== 'answer') await session.committed();
  return value;
}

async function valueOf(
  session: CommandedSession,
  frame: CommandFrame,
  by: VouchedFor,
): Promise<unknown> {
  switch (frame.type) {
    case 'send':
      await session.sendText(frame.text, {
        ...by,
        ...(frame.traceparent !== undefined && { traceparent: frame.traceparent }),
      });
      return null;
    case 'answer':
      return session.answer(frame.requestId, frame.answer, by);
    case 'cancel':
      return session.subagents.cancel(frame.subagentId, frame.reason, by);
    case 'message': {
      const sent = session.subagents.send(frame.subagentId, messageIn(frame), by);
      if (!sent.ok) return sent;
      const { messageId, resolvedPending } = sent;
      return { ok: true, messageId, resolvedPending } satisfies MessageSent;
    }
    case 'raise':
      return session.subagents.raiseBudget(frame.subagentId, frame.limits, by);
    case 'dismiss':
      session.dismiss(frame.deliveryId, by);
      return null;
    case 'shown':
      session.shown(frame.deliveryId, by);
      return null;
    case 'question.shown':
      session.questionShown(frame.requestId, by);
      return null;
  }
}
