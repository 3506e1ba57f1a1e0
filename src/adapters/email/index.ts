// The entry `offstage/email`: a `reach` channel that sends e-mail through a nodemailer transport.
//
// Owns:     the text of the message and its Message-ID.
// Does not: speak SMTP (nodemailer does), or learn whether the user has read the message.
//
// Invariants
//   EMAIL-1. The Message-ID is derived from the key, so a mailbox that compares Message-IDs shows a message only once
//       even if it was sent twice.
//   EMAIL-2. Text from users, models and tools is inserted as plain text in the body and as one line without control
//       characters in the subject.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  oneLine,
  reachHeading,
  reachText,
  type ReachChannel,
} from '../../actors/ports/reach-channel.ts';
import { aFunction, anObject, check } from '../../values/checks.ts';
import { messageOf, ProviderError, TimeoutError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';

type Item = Parameters<ReachChannel['send']>[0];
type Links = Parameters<ReachChannel['send']>[1];

interface EmailOptions {
  /** A nodemailer transport: `createTransport(…)`. */
  readonly transport: { sendMail(message: object): PromiseLike<unknown> };
  /** The sender's address, whose domain is also used in the Message-ID. */
  readonly from: string;
  /** The user's address, or a function that returns it. */
  readonly to: string | ((item: Item) => string | PromiseLike<string>);
  /**
   * Writes the message. @defaultValue a message in English with the label as its subject, and the text, the options,
   * the call and the links in its body
   */
  readonly write?: (
    item: Item,
    links: Links,
  ) => { readonly subject: string; readonly text: string };
  /** The time limit for sending one message, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

const address = z.string().regex(/^[^\r\n]*@[^\r\n]+$/, 'expected an address');
const schema = z.strictObject({
  transport: anObject('a transport of nodemailer', 'sendMail'),
  from: address,
  to: z.union([address, aFunction]),
  write: aFunction.optional(),
  timeoutMs: z.number().positive().optional(),
});

/**
 * Returns a channel that sends e-mail. The channel is `idempotent`: after a crash, it may send a message twice with the
 * same Message-ID. To send a message at most once, at the risk of not sending it at all, use `{ ...emailChannel(…),
 * idempotent: false }`.
 * @throws {ConfigurationError} `INVALID_OPTION`.
 */
export function emailChannel(options: EmailOptions): ReachChannel {
  check('emailChannel(options)', schema, options);
  const { transport, from, to, write = written, timeoutMs } = options;
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'localhost';
  return {
    idempotent: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async send(item, links) {
      const { subject, text } = write(item, links);
      // EMAIL-1
      const id = createHash('sha256').update(item.key).digest('hex').slice(0, 32);
      const message = {
        from,
        to: typeof to === 'string' ? to : await to(item),
        subject: oneLine(subject),
        text,
        messageId: `<${id}@${domain}>`,
        // Suppresses out-of-office replies (RFC 3834).
        headers: { 'Auto-Submitted': 'auto-generated' },
      };
      try {
        await transport.sendMail(message);
      } catch (error) {
        const { responseCode, command } = isRecord(error) ? error : {};
        const why = `The mail server has not accepted the message: ${messageOf(error)}`;
        if (typeof responseCode === 'number') {
          const retryable = responseCode < 500;
          throw new ProviderError('EMAIL_REFUSED', why, { retryable, cause: error });
        }
        // Without a connection, nothing was sent. If the connection was lost later, the message may have been sent and
        // only the server's answer lost.
        throw command === 'CONN' ? error : new TimeoutError(why, { cause: error });
      }
      return 'sent';
    },
  };
}

const written = (item: Item, links: Links): { subject: string; text: string } => ({
  subject: reachHeading(item),
  text: reachText(item, links),
});
