// Links in messages with which a person answers a question or an approval: creates them for `reach`, and reads them for
// the page of `serve`.
//
//   claim ─JSON, base64url─▶ body ─HMAC-SHA256─▶ body.signature ─▶ https://app.example.com/answer?t=…
//
// Owns:     the token: its content, its signature and its expiry.
// Does not: know whether the question is still open (the session does), or identify the reader (`authorize` does).
//
// Invariants
//   ANSWER-LINK-1. A token names one question of one session, as it was when the message was sent, and one person.
//   ANSWER-LINK-2. Every character of a token counts: a token that differs in one character from a created token is
//       invalid. The time of the comparison does not depend on the signature.
//   ANSWER-LINK-3. The same message has the same link: a link depends only on the question, the person, the secret and
//       journalled times.

import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import { identity } from '../actors/contracts/identity.ts';
import { mayAnswer, type QuestionView } from '../actors/contracts/session-views.ts';
import type { ReachChannel } from '../actors/ports/reach-channel.ts';
import { isSameSecret } from '../adapters/listen/access.ts';
import { aFunction, check, checkUnshown, type ChecksOf } from '../values/checks.ts';
import { callKey } from '../values/json.ts';
import { valueOfJson } from '../client/protocol.ts';

type Item = Parameters<ReachChannel['send']>[0];

/** The options of `answerLinks`. */
interface AnswerLinksOptions {
  /**
   * Signs the links: at least 32 bytes. During rotation, pass several secrets: the first one signs, and a link signed
   * with any of them is valid.
   */
  readonly secret: string | readonly string[];
  /** The address of the page, such as `https://app.example.com/answer`. `serve` answers requests for its path. */
  readonly url: string;
  /**
   * Returns the identity of the person to whom the channels bring an item, or null for no link. @defaultValue the
   * session's `user`, if this user may answer
   */
  readonly person?: (item: Item) => string | null;
  /**
   * Who may use a link. `identity`: only the person for whom it was created, whom `authorize` must recognise. `link`:
   * anyone who has the link acts as this person, so that a person to whom the message is forwarded can answer as well.
   * @defaultValue 'identity'
   */
  readonly trust?: 'identity' | 'link';
  /** How long a link is valid after its message was first sent, in milliseconds. @defaultValue 24 hours */
  readonly expiresAfterMs?: number;
}

/** The content of a valid token. */
interface LinkClaim {
  /** The session. */
  readonly sessionId: string;
  /** The question. */
  readonly requestId: string;
  /** The person for whom the link was created. */
  readonly person: string;
  /** When the link expires, in milliseconds since 1970. */
  readonly expiresAt: number;
  /** The digest of the question. */
  readonly digest: string;
}

/** The links that `answerLinks` creates, for `reach` of a session and for `serve`. */
export interface AnswerLinks {
  /** The address of the page, without a token. */
  readonly url: URL;
  /** Whether a link alone gives the right to answer. */
  readonly trust: 'identity' | 'link';
  /** Returns the links of a message. `sentAt`: when the message was first sent, in milliseconds since 1970. */
  create(item: Item, question: QuestionView, sentAt: number): Parameters<ReachChannel['send']>[1];
  /** Returns the content of a token, even if it has expired; null if it is invalid. */
  read(token: string): LinkClaim | null;
}

const DAY_MS = 86_400_000;
const MIN_SECRET_BYTES = 32;
const MAX_TOKEN_CHARS = 8_192;
/** Signed with the content, so that a signature for another purpose is not valid for a link. */
const PURPOSE = 'offstage answer link 1';

const secret = z
  .string()
  .refine(
    (text) => Buffer.byteLength(text) >= MIN_SECRET_BYTES,
    `expected at least ${MIN_SECRET_BYTES} bytes`,
  );

const optionsSchema = z.strictObject({
  secret: z.union([secret, z.array(secret).min(1)]),
  url: z.url({ protocol: /^https?$/ }).refine((text) => {
    const url = URL.parse(text);
    return url?.search === '' && url.hash === '' && url.username === '';
  }, 'expected an address without a query, a fragment or a user'),
  person: aFunction.optional(),
  trust: z.enum(['identity', 'link']).optional(),
  expiresAfterMs: z.number().positive().max(1e12).optional(),
} satisfies ChecksOf<AnswerLinksOptions>);

const claimShape = z.tuple([
  z.string().min(1).max(200),
  z.string().min(1),
  identity,
  z.number(),
  z.string(),
]);

/**
 * Creates signed links with which a person answers questions and approvals from a message. Pass the result to `reach`
 * of the sessions and to `serve`.
 * @throws {ConfigurationError} `INVALID_OPTION`.
 */
export function answerLinks(options: AnswerLinksOptions): AnswerLinks {
  checkUnshown('answerLinks(options)', optionsSchema, options);
  const { person = userOf, trust = 'identity', expiresAfterMs = DAY_MS } = options;
  const secrets = [options.secret].flat();
  const url = new URL(options.url);
  return {
    url,
    trust,
    create(item, question, sentAt) {
      const to = person(item);
      if (to === null) return [];
      check('answerLinks: the result of `person`', identity, to, 'INVALID_IDENTITY');
      const { sessionId } = item;
      const claim = [
        sessionId,
        question.requestId,
        to,
        sentAt + expiresAfterMs,
        digestOf(question),
      ];
      const body = Buffer.from(JSON.stringify(claim)).toString('base64url');
      const link = new URL(url);
      link.searchParams.set('t', `${body}.${signatureOf(secrets[0] ?? '', body)}`);
      return [{ label: 'Answer', url: link.href }];
    },
    read(token) {
      const [body = '', signature = '', ...rest] = token.slice(0, MAX_TOKEN_CHARS + 1).split('.');
      if (token.length > MAX_TOKEN_CHARS || rest.length > 0) return null;
      // ANSWER-LINK-2: compares texts, because several texts decode to the same bytes.
      const valid = secrets.filter((one) => isSameSecret(signature, signatureOf(one, body)));
      if (valid.length === 0) return null;
      const text = Buffer.from(body, 'base64url').toString('utf8');
      const claim = claimShape.safeParse(valueOfJson(text));
      if (!claim.success) return null;
      const [sessionId, requestId, to, expiresAt, digest] = claim.data;
      return { sessionId, requestId, person: to, expiresAt, digest };
    },
  };
}

function userOf({ user, answerableBy }: Item): string | null {
  return user !== undefined && mayAnswer({ answerableBy }, user) ? user : null;
}

function signatureOf(key: string, body: string): string {
  return createHmac('sha256', key).update(`${PURPOSE}.${body}`).digest('base64url');
}

/** Returns the call that an approval covers at present; null for a question. */
export function callOf({ action, changed }: QuestionView) {
  return action ? { ...action, ...(changed && { input: changed.input }) } : null;
}

/** Returns the digest of everything that a person sees when answering (ANSWER-LINK-1). */
export function digestOf(question: QuestionView): string {
  const { askedAt, question: text, options } = question;
  const call = callOf(question);
  const seen = [
    askedAt,
    text,
    options.map(({ id, label }) => [id, label]),
    call && callKey(call.toolName, call.input),
  ];
  return createHash('sha256').update(JSON.stringify(seen)).digest('base64url');
}
