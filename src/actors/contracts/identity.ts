// Identities that the app knows: a user id, an operator, a service. The app that owns a connection vouches for its
// identity (`by`); a message from a client never contains an identity.
//
// Does not: authenticate identities.
//
// Invariants
//   WHO-1. Only the identities in `answerableBy` may answer a question. An attempt by any other identity, or without an
//       identity, has no effect: the question stays open.
//   WHO-2. The identity that answered is recorded in the journal, in the receipt and in the ledger of the subagent's
//       calls, and is passed to the tool that the answer permits.
//   WHO-3. A result or notice counts as seen only if the client that reports it hears for the session's user. The report
//       of any other client changes nothing, so the delivery stays pending, and `reach` still sends it.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';

const MAX_IDENTITY_CHARS = 200;

/** An identity in a form that every journal can store. */
export const identity = z
  .string()
  .min(1)
  .max(MAX_IDENTITY_CHARS)
  .refine((name) => name.isWellFormed() && !name.includes('\0'), 'expected text without NUL');

/** The identities that may answer. An empty list is refused, because then no identity could answer. */
export const identities = z.array(identity).min(1).max(1000);

/** The identity that the app vouches for. */
export interface VouchedFor {
  /**
   * The identity of the caller, at most 200 characters. The app derives it from what it knows about the connection,
   * never from data received over the connection. @defaultValue the session's `user`
   */
  readonly by?: string;
}

/** The sender of a message, as the app knows it. */
export interface SaidBy extends VouchedFor {
  /**
   * The `traceparent` header (W3C) of the caller's span, with which `tracedJournal` continues the caller's trace; an
   * invalid header is ignored.
   * @defaultValue none
   */
  readonly traceparent?: string;
}

/** A client of the session, as the app knows it. A client with an identity is listed in `present`. */
export interface ClientSource extends VouchedFor {
  /** The client's device, such as `phone`, at most 200 characters. @defaultValue none */
  readonly device?: string;
  /**
   * Whether this client hears for the session's user: whether what it plays or shows counts as heard, and whether the
   * user counts as present while it is attached.
   * @defaultValue true, unless the session has a `user` and `by` is another identity
   */
  readonly hears?: boolean;
}

/** The options of an answer. */
export interface AnsweringOptions extends VouchedFor {
  /**
   * Whether the answer counts only while the question waits for its first answer. Otherwise, `{ approved: false }` also
   * revokes an approval that lasts. @defaultValue false
   */
  readonly onlyOpen?: boolean;
}

const vouchedFor = z.strictObject({ by: identity.optional() });
const clientSource = vouchedFor.extend({
  device: identity.optional(),
  hears: z.boolean().optional(),
});

/** @throws {ConfigurationError} `INVALID_ARGUMENT` */
export function checkedClient(where: string, options: unknown): ClientSource {
  return withoutUndefined(check(where, clientSource, options, 'INVALID_ARGUMENT'));
}

/** @throws {ConfigurationError} `INVALID_ARGUMENT` */
export function checkedBy(where: string, options: unknown): string | undefined {
  return check(where, vouchedFor, options, 'INVALID_ARGUMENT').by;
}

const answering = vouchedFor.extend({ onlyOpen: z.boolean().optional() });

/** @throws {ConfigurationError} `INVALID_ARGUMENT` */
export function checkedAnswering(where: string, options: unknown) {
  return check(where, answering, options, 'INVALID_ARGUMENT');
}

const saidBy = vouchedFor.extend({ traceparent: z.string().optional() });

/**
 * Checks `by`, like `checkedBy`, and parses the caller's W3C trace context; an invalid context is omitted.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`
 */
export function checkedSource(where: string, options: unknown) {
  const { by, traceparent } = check(where, saidBy, options, 'INVALID_ARGUMENT');
  return { by, traceparent: readTraceparent(traceparent) };
}
