// Notices before they enter the outbox. A notice informs the user of something that no tool call is waiting for.
//
// Owns:     the properties of a notice, and the subset that an app may set.
// Does not: decide whether there is room for a notice, or when it is delivered (outbox).

import { z } from 'zod';
import { check, checkLength } from '../../../values/checks.ts';
import type { DeliveryPriority } from '../../../machines/index.ts';
import type { Host } from '../../runtime/host.ts';
import { noticePrompt } from '../../conversation/prompts.ts';
import type { EventFor, Receiver } from '../../contracts/session-protocol.ts';

type Posted = EventFor<'notices'>;

/** The content of a notice. */
export type NewNotice = Pick<Posted, 'label' | 'text'> &
  Partial<Omit<Posted, 'type' | 'label' | 'text'>>;

/**
 * Posts a notice. By default it has normal priority, no subagent, no expiry, no reserved place, and the prompt from
 * `noticePrompt`. Returns the `deliveryId`.
 */
export function postNotice(session: Receiver & { readonly host: Host }, notice: NewNotice): string {
  const { label, text } = notice;
  const deliveryId = notice.deliveryId ?? session.host.environment.ids.next('dlv');
  session.receive('notices', {
    type: 'notice.posted',
    deliveryId,
    kind: notice.kind ?? 'notice',
    priority: notice.priority ?? 'normal',
    label,
    text,
    prompt: notice.prompt ?? noticePrompt(label, text),
    subagentId: notice.subagentId ?? null,
    ttlMs: notice.ttlMs ?? null,
    reserved: notice.reserved ?? false,
    ...(notice.result && { result: notice.result }),
  });
  return deliveryId;
}

/** The options of an app's notice. */
export interface NoticeOptions {
  /** `urgent` interrupts the current speech. @defaultValue 'normal' */
  readonly priority?: DeliveryPriority;
  /** The kind of news, in one or two words. @defaultValue 'SUBAGENT UPDATE' */
  readonly label?: string;
  /** The time after which an undelivered notice is dropped, in milliseconds. @defaultValue none: it is kept */
  readonly ttlMs?: number;
}

const words = z.string().refine((text) => text.trim() !== '', 'expected words');
const schema = z.strictObject({
  priority: z.enum(['normal', 'high', 'urgent']).default('normal'),
  label: words.default('SUBAGENT UPDATE'),
  ttlMs: z.number().positive().optional(),
});

/**
 * @throws {ConfigurationError} `INVALID_NOTICE` if the text has no words, or an option is invalid.
 * @throws {CapacityError} `TEXT_TOO_LONG`
 */
export function checkedNotice(text: string, options: NoticeOptions = {}): NewNotice {
  const where = 'notifyBackground(text, options)';
  const checked = check(where, schema, options, 'INVALID_NOTICE');
  const { priority, label, ttlMs = null } = checked;
  const said = checkLength(where, check(where, words, text, 'INVALID_NOTICE'));
  return { text: said, priority, label, ttlMs };
}
