// The page on which a person answers a question from a link (`answer-links.ts`), without a script.
//
//   GET ─▶ token ─▶ person ─▶ question (read only) ─▶ form        POST ─▶ the same checks ─▶ answer ─▶ receipt
//
// Owns:     the page, its headers, and the order of the checks.
// Does not: hold the session (`serve.ts` and the hub do), or decide whether an answer is accepted (the session does).
//
// Invariants
//   ANSWER-PAGE-1. Only a POST from the page itself acts. A GET or HEAD, as mail scanners send it, changes nothing.
//   ANSWER-PAGE-2. The page shows nothing about a question, and accepts no answer, before the person is known: by
//       `authorize`, or by the link if the app trusts links.
//   ANSWER-PAGE-3. An answer counts only if the question is still waiting, and is the question that the message showed.
//   ANSWER-PAGE-4. All text from users, models and tools is escaped, and its hidden characters are shown as codes.

import { createHash } from 'node:crypto';
import { isWaiting, mayAnswer, withoutArguments } from '../actors/contracts/session-views.ts';
import type { AnswerReceipt, QuestionView } from '../actors/contracts/session-views.ts';
import { contentSecurityPolicy, pageHeaders } from '../adapters/listen/page-headers.ts';
import { readText, webHandlers, type WebHandlers } from '../adapters/listen/web-requests.ts';
import { wallTime } from '../actors/ports/environment.ts';
import { codeOf, isA, OffstageError } from '../values/errors.ts';
import { visible, withoutHidden } from '../values/visible.ts';
import { callOf, digestOf, type AnswerLinks } from './answer-links.ts';
import { checkedIdentity, type CheckedServe, type ServedSession } from './options.ts';

type Given = Parameters<ServedSession['answer']>[1];
type Claim = NonNullable<ReturnType<AnswerLinks['read']>>;

/** The server's access to the sessions. */
interface AnsweredSessions {
  /** Returns a question without changing anything; undefined if the session no longer has it. */
  question(sessionId: string, requestId: string): Promise<QuestionView | undefined>;
  /** Answers a question with the result of `answer`, if it is still waiting. */
  answer(
    { sessionId, requestId, person }: Claim,
    answer: (question: QuestionView) => Given | null,
  ): Promise<readonly [receipt: AnswerReceipt, question: QuestionView | undefined]>;
}

/** Creates the handlers of the page. */
export function answerPage(
  links: AnswerLinks,
  options: CheckedServe,
  sessions: AnsweredSessions,
): WebHandlers {
  const { url, trust } = links;
  const { environment, limits, hosts = [], onError } = options;

  async function answer(request: Request, requested: URL): Promise<Response> {
    if (request.method !== 'POST')
      return opened(request, requested, requested.searchParams.get('t') ?? '');
    // ANSWER-PAGE-1: every browser sends `Origin` with a form.
    if (request.headers.get('origin') !== url.origin)
      return page(403, 'Refused', ['Answers are accepted only from this page itself.']);
    const text = await readText(request, limits.maxMessageBytes);
    if (text === null) return page(413, 'Refused', ['The answer is too long.']);
    const posting = new URLSearchParams(text);
    const token = posting.get('t') ?? '';
    const given = givenIn(posting);
    return given ? posted(request, requested, token, given) : opened(request, requested, token);
  }

  /** Returns the content of a token whose person has been verified, or the page that refuses the request. */
  async function claimOf(request: Request, requested: URL, token: string) {
    const claim = links.read(token);
    if (!claim) return page(403, 'This link is not valid', ['Use the link in the message.']);
    if (trust === 'link') return claim;
    const { sessionId, person } = claim;
    const { headers } = request;
    const asked = { token: null, sessionId, headers, url: requested, transport: 'link' } as const;
    const identity = checkedIdentity(await options.authorize(asked));
    if (!identity) return page(401, 'Sign in first', ['Sign in, and then open the link again.']);
    const isPerson = identity.user === person && identity.sessionId === sessionId;
    if (isPerson && identity.role !== 'watcher') return claim;
    return page(403, 'This link is for another person', ['It was sent to another person.']);
  }

  const isExpired = ({ expiresAt }: Claim): boolean => wallTime(environment.clock) >= expiresAt;

  async function opened(request: Request, requested: URL, token: string): Promise<Response> {
    const claim = await claimOf(request, requested, token);
    if (claim instanceof Response) return claim;
    const question = await sessions.question(claim.sessionId, claim.requestId);
    const isOpen = question && isWaiting(question.state) && !isExpired(claim);
    return isOpen && isSame(question, claim)
      ? form(question, claim, token)
      : stale(question, claim, isExpired(claim));
  }

  async function posted(request: Request, requested: URL, token: string, given: Given) {
    const claim = await claimOf(request, requested, token);
    if (claim instanceof Response) return claim;
    if (isExpired(claim))
      return stale(await sessions.question(claim.sessionId, claim.requestId), claim, true);
    try {
      // ANSWER-PAGE-3
      const [receipt, question] = await sessions.answer(claim, (asked) => {
        if (!isSame(asked, claim)) return null;
        return given.approved && asked.changed ? { ...given, input: asked.changed.input } : given;
      });
      if (!receipt.accepted) return refused(receipt.reason, question, claim);
      const done =
        given.approved === undefined ? 'Answered' : given.approved ? 'Approved' : 'Declined';
      return page(200, done, ['Your answer has been received. You can close this page.']);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'SESSION_CLOSED') return stale(undefined, claim, false);
      const isKnown = isA(error, OffstageError);
      if (
        isKnown &&
        (code === 'INVALID_INPUT' || code === 'INVALID_ANSWER' || code === 'TEXT_TOO_LONG')
      )
        return page(400, 'Refused', ['This answer cannot be accepted. Open the app to answer.']);
      onError(error, `serve: answer in ${claim.sessionId}`);
      const text = 'Nothing has been recorded. Wait a moment, and then open the link again.';
      return page(503, 'Not available at the moment', [text], { 'retry-after': '5' });
    }
  }

  return webHandlers({
    name: 'serve',
    path: url.pathname,
    reachable: { hosts: [url.host, ...hosts], origins: [url.origin] },
    methods: ['GET', 'HEAD', 'POST'],
    cors: null,
    scheduler: environment.scheduler,
    maxBytes: limits.maxMessageBytes,
    async answer(request, requested) {
      const response = await answer(request, requested);
      return request.method === 'HEAD' ? new Response(null, response) : response;
    },
    onError,
  });
}

/** Returns the answer in a posted form; null if there is none. */
function givenIn(posting: URLSearchParams): Given | null {
  const [approved, optionId] = [posting.get('approved'), posting.get('option')];
  if (approved !== null) return { approved: approved === 'yes' };
  if (optionId !== null) return { optionId };
  const text = (posting.get('text') ?? '').trim();
  return text === '' ? null : { text };
}

/** ANSWER-PAGE-3 */
function isSame(question: QuestionView, { digest, person }: Claim): boolean {
  return digestOf(question) === digest && mayAnswer(question, person);
}

function form(question: QuestionView, { person, expiresAt }: Claim, token: string): Response {
  const call = callOf(question);
  const button = (name: string, value: string, label: string): string =>
    `<button name="${name}" value="${escaped(value)}">${escaped(withoutHidden(label))}</button>`;
  const buttons = call
    ? [button('approved', 'yes', 'Approve'), button('approved', 'no', 'Decline')]
    : question.options.map(({ id, label }) => button('option', id, label));
  const field =
    '<label for="text">Answer</label><textarea id="text" name="text" rows="3" required></textarea>';
  const forms = [
    ...(buttons.length > 0 ? [buttons.join('')] : []),
    ...(call ? [] : [`${field}<button>Send</button>`]),
  ];
  const hidden = `<input type="hidden" name="t" value="${escaped(token)}">`;
  return page(200, call ? 'Do you approve this?' : 'A question for you', [
    new Markup(`<p class="text">${escaped(withoutHidden(withoutArguments(question)))}</p>`),
    ...(call ? [new Markup(callText(call))] : []),
    ...forms.map(
      (fields) => new Markup(`<form method="post" action="?">${hidden}${fields}</form>`),
    ),
    `You answer as ${visible(person)}. The link is valid until ${timeText(expiresAt)}.`,
  ]);
}

function timeText(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function callText({ toolName, input }: NonNullable<ReturnType<typeof callOf>>): string {
  const json = JSON.stringify(input, null, 2) ?? '';
  return `<h2>${escaped(visible(toolName))}</h2><pre tabindex="0">${escaped(visible(json))}</pre>`;
}

/** Says why a receipt refused the answer. */
function refused(
  reason: Extract<AnswerReceipt, { accepted: false }>['reason'],
  question: QuestionView | undefined,
  claim: Claim,
): Response {
  if (reason === 'invalid_option')
    return page(400, 'Refused', ['This is not an answer to the question.']);
  if (reason === 'queued' || reason === 'not_presented')
    return page(409, 'Not yet', ['Another question comes first. Open the app to answer.']);
  return stale(question, claim, false);
}

/** Says what has become of a question that can no longer be answered with this link. */
function stale(question: QuestionView | undefined, claim: Claim, isLate: boolean): Response {
  const state = question?.state;
  if (!question || !state)
    return page(410, 'No longer open', [
      'This question was answered or withdrawn, or it has expired.',
    ]);
  if (!isWaiting(state)) {
    const { answer, answeredBy, answeredAt, reason } = question;
    if (state === 'answered')
      return page(409, 'Already answered', [
        ...(answer === null ? [] : [`The answer was: ${withoutHidden(answer)}`]),
        ...(answeredBy === undefined ? [] : [`Answered by ${visible(answeredBy)}.`]),
        ...(answeredAt === undefined ? [] : [`Answered on ${timeText(answeredAt)}.`]),
      ]);
    const [title, text] =
      state === 'expired'
        ? ['Expired', 'The question was not answered in time.']
        : ['Withdrawn', 'The question is no longer needed.'];
    return page(410, title, [text, ...(reason === undefined ? [] : [withoutHidden(reason)])]);
  }
  if (isLate)
    return page(410, 'This link has expired', [
      'The question is still open. Open the app to answer.',
    ]);
  return mayAnswer(question, claim.person)
    ? page(409, 'The question has changed', [
        'It is no longer the question in the message. Open the app to answer.',
      ])
    : page(403, 'Not allowed', ['Another person has to answer this question.']);
}

/** HTML that is already escaped. */
class Markup {
  readonly html: string;

  constructor(html: string) {
    this.html = html;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** ANSWER-PAGE-4 */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);
}

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0; padding: 1.5rem 1rem; color: light-dark(#1c1c1e, #f2f2f7); background: light-dark(#fff, #1c1c1e); }
main { max-width: 36rem; margin: 0 auto; overflow-wrap: anywhere; }
h1 { font-size: 1.375rem; line-height: 1.25; } h2 { font-size: 1rem; margin-bottom: 0.25rem; }
.text { white-space: pre-wrap; }
pre { white-space: pre-wrap; padding: 0.75rem; border-radius: 0.5rem; background: light-dark(#f2f2f7, #2c2c2e); }
form { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1.25rem 0; }
button { flex: 1 1 9rem; min-height: 2.75rem; font: inherit; color: inherit; border-radius: 0.5rem;
  border: 1px solid light-dark(#6c6c70, #aeaeb2); background: transparent; cursor: pointer; overflow-wrap: anywhere; }
label, textarea { flex: 1 1 100%; box-sizing: border-box; font: inherit; }
:focus-visible { outline: 3px solid light-dark(#0a58ca, #6ea8fe); outline-offset: 2px; }
`;

const HEADERS = {
  ...pageHeaders,
  // With `no-referrer`, a browser would send the page's own form with `Origin: null`.
  'referrer-policy': 'same-origin',
  'content-security-policy': contentSecurityPolicy({
    style: `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  }).replace("form-action 'none'", "form-action 'self'"),
  'content-type': 'text/html; charset=utf-8',
  'x-robots-tag': 'noindex',
};

function page(
  status: number,
  title: string,
  parts: readonly (string | Markup)[],
  headers: Readonly<Record<string, string>> = {},
): Response {
  const body = parts.map((part) =>
    part instanceof Markup ? part.html : `<p>${escaped(part)}</p>`,
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${body.join('\n')}
</main>
</body>
</html>
`;
  return new Response(html, { status, headers: { ...HEADERS, ...headers } });
}
