// The fates of the messages that a parent sent: the step at which each was read, or the reason why it never
// was. `send_to_subagent` does not wait for them; later reports contain them.

import type { MessageReceipt, SubagentService } from '../../contracts/service-types.ts';

/** A message with its receipt; `pending` while it may still be read. */
export type SentMessage = { readonly messageId: string } & (
  | MessageReceipt
  | { readonly applied: 'pending' }
);

/** The limit of messages per subagent, and of subagents per service: the oldest are forgotten. */
const MAX_MESSAGES = 20;
const MAX_SUBAGENTS = 1000;

const logs = new WeakMap<SubagentService, Map<string, SentMessage[]>>();

export function keepReceipt(
  service: SubagentService,
  subagentId: string,
  messageId: string,
  receipt: Promise<MessageReceipt>,
): void {
  const log = logs.get(service) ?? new Map<string, SentMessage[]>();
  logs.set(service, log);
  const sent = log.get(subagentId) ?? [];
  // The subagent that got the latest message is forgotten last.
  log.delete(subagentId);
  log.set(subagentId, sent);
  for (const [oldest] of log) {
    if (log.size <= MAX_SUBAGENTS) break;
    log.delete(oldest);
  }
  sent.push({ messageId, applied: 'pending' });
  sent.splice(0, sent.length - MAX_MESSAGES);
  void receipt.then((settled) => {
    const at = sent.findIndex((message) => message.messageId === messageId);
    if (at >= 0) sent[at] = { messageId, ...settled };
  });
}

/** Returns the messages, oldest first. */
export function sentMessages(service: SubagentService, subagentId: string): readonly SentMessage[] {
  return logs.get(service)?.get(subagentId)?.slice() ?? [];
}
