// The inspector's page and its requests: sessions, entries, the machines after an entry, and actions.
//
//   page ─▶ Host, Origin ─▶ token ─▶ the journal
//                                └─▶ the session, if the app lets it act
//
// Owns:     access to the page and its actions, the routes, the cached sessions.
// Does not: listen (the app or the command line does) or fold entries (`inspected-session.ts`).
//
// Invariants
//   INSPECTOR-1. A request receives session data only with the token, a trusted Host and the page's own origin. The
//       page itself contains no session data.
//   INSPECTOR-2. The page can act only if `act` is given. It then sends the frames and calls the methods of a client,
//       under the name `user`. It can write forks only if `forks` is set. A fork is a separate session and does not
//       deliver anything.
//   INSPECTOR-3. No request throws, and at most `MAX_BODY_BYTES` of a body are read.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { InspectionEvent } from 'xstate';
import { z } from 'zod';
import { identity } from '../actors/contracts/identity.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { Journal, JournalEntry } from '../actors/ports/journal.ts';
import { forkSession } from '../actors/replay/fork-session.ts';
import { exportRecording } from '../actors/replay/recording.ts';
import { redactNothing, redactWords, type Redact } from '../adapters/inspect/shown-value.ts';
import { bearerToken, isLoopbackName, isSameSecret, targetOf } from '../adapters/listen/access.ts';
import { contentSecurityPolicy, pageHeaders } from '../adapters/listen/page-headers.ts';
import { readBody } from '../adapters/listen/request-body.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import { carryOut, type CommandedSession } from '../actors/session/view/base-session.ts';
import { readClientFrame, valueOfJson } from '../client/protocol.ts';
import { aFunction, check, type ChecksOf } from '../values/checks.ts';
import { codeOf, isA, messageOf, OffstageError } from '../values/errors.ts';
import { chartOf, shownMachines } from './charts.ts';
import { InspectedSession } from './inspected-session.ts';
import { laidOutCharts } from './laid-out-charts.ts';
import { OwnMachines } from './own-machines.ts';
import { pageHtml, pageStyle } from './page.ts';
import { pageScript } from './page-script.ts';
import { reporter } from '../values/reporter.ts';

/** The part of a session that the inspector needs for actions. */
export type ActedSession = CommandedSession;

/** The options of `inspector`. */
export interface InspectorPageOptions {
  /**
   * The journal that contains the sessions. Its `scopes` lists them. @defaultValue none: the page shows only the
   * machines of `inspect`
   */
  readonly journal?: Journal;
  /** The secret that gives access. It has at least 16 characters. The page's URL contains it in the fragment. */
  readonly token: string;
  /**
   * Returns the running session with this id, or null if this process does not run it. The page can then answer and
   * dismiss questions, send messages, cancel subagents and raise budgets. @defaultValue none: the page is read-only
   */
  readonly act?: (sessionId: string) => ActedSession | null | Promise<ActedSession | null>;
  /**
   * Whether the page may copy the start of a session to another id in the journal, as `forkSession` does.
   * @defaultValue false
   */
  readonly forks?: boolean;
  /** The `by` value of the page's actions. @defaultValue 'inspector' */
  readonly user?: string;
  /** The page's path. @defaultValue '/inspect' */
  readonly path?: string;
  /** Whether to hide text from users and models, or a function that decides; see `redactWords`. @defaultValue true */
  readonly redact?: boolean | Redact;
  /** Additional host names that are accepted in the `Host` header. @defaultValue localhost only */
  readonly hosts?: readonly string[];
  /** Time and randomness. @defaultValue the process's */
  readonly environment?: Environment;
  /** Called with errors that the page does not receive. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The page for a journal's sessions and an app's machines. `inspector` returns it. */
export interface InspectorPage {
  /** Handles a request to the page. For any other path, calls `next`, or responds with 404 if there is no `next`. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /**
   * Shows the actors of an app's machines: `createActor(machine, { inspect: page.inspect })`. It never throws, and
   * converts data only when a page requests the data.
   */
  readonly inspect: (event: InspectionEvent) => void;
}

const optionsSchema = z.strictObject({
  journal: z.looseObject({ read: aFunction }).optional(),
  token: z.string().min(16).max(500),
  act: aFunction.optional(),
  forks: z.boolean().optional(),
  user: identity.optional(),
  path: z
    .string()
    .regex(/^\/[\w.~-]+(?:\/[\w.~-]+)*$/, 'expected a path such as /inspect')
    .optional(),
  redact: z.union([z.boolean(), aFunction]).optional(),
  hosts: z.array(z.string().min(1).max(300)).max(1_000).optional(),
  environment: z.looseObject({ clock: z.unknown(), scheduler: z.unknown() }).optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<InspectorPageOptions>);

/**
 * Creates the inspector's page for the sessions of a journal, to be mounted in a server.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function inspector(options: InspectorPageOptions): InspectorPage {
  check('inspector(options)', optionsSchema, options);
  return new Page(options);
}

const MAX_BODY_BYTES = 65_536;
const BODY_TIMEOUT_MS = 10_000;
/** The maximum number of entries in one response. */
const MAX_ENTRIES = 10_000;
/** The number of sessions whose entries are cached. */
const MAX_SESSIONS = 8;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const json = (value: unknown, status = 200): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});

/** The elkjs files that the page loads to position an app's chart. */
const ELK_FILES: ReadonlyMap<string, string> = new Map([
  ['/elk-api.js', 'elkjs/lib/elk-api.js'],
  ['/elk-worker.js', 'elkjs/lib/elk-worker.min.js'],
]);

const noJournal: Journal = { append() {}, read: () => [], scopes: () => [] };

const STATE_UNKNOWN =
  'The state after this entry is not known: the journal has dropped what came before it';

const refusal = (status: number, message: string): Answer => json({ error: { message } }, status);

class Page implements InspectorPage {
  readonly #options: InspectorPageOptions;
  readonly #path: string;
  readonly #redact: Redact;
  readonly #environment: Environment;
  readonly #onError: (error: unknown, where: string) => void;
  /** The most recently requested session comes last. */
  readonly #sessions = new Map<string, InspectedSession>();
  readonly #journal: Journal;
  readonly #machines: OwnMachines;
  readonly inspect: InspectorPage['inspect'];

  constructor(options: InspectorPageOptions) {
    const { redact = true, path = '/inspect', environment = nodeEnvironment(), onError } = options;
    this.#options = options;
    this.#path = path;
    this.#environment = environment;
    this.#redact = redact === true ? redactWords : redact === false ? redactNothing : redact;
    this.#onError = reporter(onError);
    this.#journal = options.journal ?? noJournal;
    this.#machines = new OwnMachines(this.#redact, environment.clock, this.#onError);
    this.inspect = this.#machines.inspect;
  }

  readonly handle: InspectorPage['handle'] = (request, response, next) => {
    response.on('error', () => response.destroy());
    void this.#handle(request, response, next).catch((error: unknown) => {
      this.#onError(error, 'inspector');
      response.destroy();
    });
  };

  async #handle(
    request: IncomingMessage & { readonly originalUrl?: string },
    response: ServerResponse,
    next?: () => void,
  ): Promise<void> {
    const target = targetOf(request.originalUrl ?? request.url);
    const path = target?.path ?? '';
    if (path !== this.#path && !path.startsWith(`${this.#path}/`)) {
      if (next) next();
      else write(response, refusal(404, 'Nothing is here'));
      return;
    }
    try {
      const query = target?.query ?? new URLSearchParams();
      write(response, await this.#answer(request, path.slice(this.#path.length), query));
    } catch (error) {
      this.#onError(error, 'inspector');
      const message = isA(error, OffstageError) ? messageOf(error) : 'The inspector failed';
      write(response, refusal(500, message));
    }
  }

  async #answer(request: IncomingMessage, route: string, query: URLSearchParams): Promise<Answer> {
    const { host = '', origin } = request.headers;
    const { hosts = [] } = this.#options;
    if (!isLoopbackName(host) && !hosts.includes(host))
      return refusal(403, 'Expected a Host that is served here');
    if (origin !== undefined && URL.parse(origin)?.host !== host)
      return refusal(403, 'Expected the Origin of this page');
    const isPost = request.method === 'POST';
    if (!isPost && request.method !== 'GET') return refusal(405, 'Expected GET or POST');
    if (!isPost && route === '')
      return { status: 200, type: 'text/html', body: pageHtml(this.#path) };
    if (!isPost && route === '/page.js')
      return { status: 200, type: 'text/javascript', body: pageScript };
    if (!isPost && route === '/page.css') return { status: 200, type: 'text/css', body: pageStyle };
    const elk = isPost ? undefined : ELK_FILES.get(route);
    if (elk !== undefined) return elkFile(elk);
    if (!isSameSecret(bearerToken(request.headers), this.#options.token))
      return refusal(401, 'Expected the token');
    if (isPost && route === '/api/act') return this.#act(request);
    if (isPost && route === '/api/fork') return this.#fork(request);
    if (isPost) return refusal(404, 'Nothing is here');
    switch (route) {
      case '/api/charts':
        return { status: 200, type: 'application/json', body: chartsBody() };
      case '/api/sessions':
        return json(await this.#list());
      case '/api/entries':
        return this.#entries(query);
      case '/api/at':
        return this.#at(query);
      case '/api/test':
        return this.#test(query);
      case '/api/machines':
        return json(this.#machines.list());
      case '/api/machine':
        return found(this.#machines.at(query.get('id') ?? ''), 'There is no such actor');
      case '/api/chart':
        return found(this.#machines.chart(query.get('of') ?? ''), 'Its machine is gone');
      default:
        return refusal(404, 'Nothing is here');
    }
  }

  async #list(): Promise<unknown> {
    const scopes = (await this.#journal.scopes?.()) ?? [];
    return scopes.map(({ scope, entries, firstAt, lastAt }) => ({
      scope,
      entries,
      firstAt,
      lastAt,
    }));
  }

  async #entries(query: URLSearchParams): Promise<Answer> {
    const session = await this.#session(query);
    if (!session) return refusal(404, 'There is no such session');
    const after = wholeNumber(query.get('after')) ?? 0;
    const { failure } = session;
    return json({
      now: this.#environment.clock.now(),
      count: session.count,
      kept: session.kept,
      epoch: session.epoch,
      isDropped: session.isDropped,
      stateFrom: session.stateFrom,
      mayAct: this.#options.act !== undefined,
      mayFork: this.#options.forks === true,
      maySave: this.#redact === redactNothing,
      failure: failure === null ? null : messageOf(failure),
      entries: session.after(after, MAX_ENTRIES),
    });
  }

  /** The author of an action. */
  get #by(): string {
    return this.#options.user ?? 'inspector';
  }

  async #at(query: URLSearchParams): Promise<Answer> {
    const session = await this.#session(query);
    const subject = session?.subjectAt(
      wholeNumber(query.get('entry')) ?? 0,
      query.get('id') ?? 'session',
      this.#by,
    );
    return found(subject ?? null, 'There is no such entry');
  }

  /** Returns the session up to an entry as a test file. Without the texts, a recording would replay differently. */
  async #test(query: URLSearchParams): Promise<Answer> {
    if (this.#redact !== redactNothing)
      return refusal(403, 'A test holds the words of the session, and they are hidden here');
    const session = await this.#session(query);
    const n = wholeNumber(query.get('entry')) ?? 0;
    if (!session || n < 1 || n > session.count) return refusal(404, 'There is no such entry');
    const entries = session.upTo(n);
    if (entries.length === 0) return refusal(404, STATE_UNKNOWN);
    return json(await savedTest(query.get('session') ?? '', entries));
  }

  async #fork(request: IncomingMessage): Promise<Answer> {
    if (this.#options.forks !== true)
      return json(refused('NOT_ALLOWED', 'This inspector does not fork'));
    const posted = await this.#posted(request);
    if ('status' in posted) return posted;
    const asked = forkSchema.safeParse(posted.value);
    if (!asked.success) return refusal(400, z.prettifyError(asked.error));
    const { session: from, entry: after, to } = asked.data;
    const session = await this.#session(new URLSearchParams({ session: from }));
    if (!session)
      return json(refused('UNKNOWN_SESSION', `The journal has no session ${JSON.stringify(from)}`));
    if (after > session.count)
      return json(refused('INVALID_OPTION', `Expected an entry up to ${session.count}`));
    // The entries that the page shows. The journal may since have dropped some of them.
    const entries = session.upTo(after);
    if (entries.length === 0) return json(refused('JOURNAL_CUT', STATE_UNKNOWN));
    const source: Journal = { append() {}, read: () => entries };
    return receiptOf(async () => {
      const { length } = entries;
      await forkSession(source, { from, after: length, to, into: this.#journal });
      return { session: to, entries: length };
    });
  }

  async #session(query: URLSearchParams): Promise<InspectedSession | null> {
    const scope = query.get('session') ?? '';
    const known = this.#sessions.get(scope);
    const session =
      known ?? new InspectedSession(this.#journal, scope, this.#redact, this.#environment);
    await session.look();
    if (session.count === 0) return null;
    this.#sessions.delete(scope);
    this.#sessions.set(scope, session);
    for (const oldest of this.#sessions.keys())
      if (this.#sessions.size > MAX_SESSIONS) this.#sessions.delete(oldest);
    return session;
  }

  async #act(request: IncomingMessage): Promise<Answer> {
    const { act } = this.#options;
    if (!act) return json(refused('NOT_ALLOWED', 'This inspector only looks'));
    const read = await this.#posted(request);
    if ('status' in read) return read;
    const posted = read.value as { session?: unknown; frame?: unknown };
    const frame = readClientFrame(posted?.frame);
    if (typeof frame === 'string') return refusal(400, `Expected a frame: ${frame}`);
    if (!('id' in frame) || frame.type === 'call.claim' || frame.type === 'call.result')
      return refusal(400, 'Expected a command of a user, which has a receipt');
    const session = await act(String(posted.session));
    if (!session)
      return json(refused('SESSION_UNKNOWN', 'The session does not run in this process'));
    const by = { by: this.#by };
    return receiptOf(() => {
      // The page has shown the question to the person who answers.
      if (frame.type === 'answer') session.questionShown(frame.requestId, by);
      return carryOut(session, frame, by);
    });
  }

  /** Returns the posted value, or the reason for the refusal. */
  async #posted(request: IncomingMessage): Promise<Answer | { readonly value: unknown }> {
    if (!(request.headers['content-type'] ?? '').startsWith('application/json'))
      return refusal(415, 'Expected content-type application/json');
    const body = await readBody(request, {
      scheduler: this.#environment.scheduler,
      maxBytes: MAX_BODY_BYTES,
      timeoutMs: BODY_TIMEOUT_MS,
    });
    return Buffer.isBuffer(body)
      ? { value: valueOfJson(body.toString('utf8')) }
      : refusal(400, `Expected at most ${MAX_BODY_BYTES} bytes`);
  }
}

/** Returns the charts of the session's machines, with their layout. */
function chartsBody(): string {
  const charts = Object.entries(shownMachines).map(([name, machine]) => [name, chartOf(machine)]);
  return `{"charts":${JSON.stringify(Object.fromEntries(charts))},"placed":${laidOutCharts}}`;
}

const found = (value: object | null, otherwise: string): Answer =>
  value === null ? refusal(404, otherwise) : json(value);

/**
 * The app installs elkjs. Without it, the page shows nested boxes. The console would show a refused script as an error.
 */
async function elkFile(name: string): Promise<Answer> {
  const type = 'text/javascript';
  try {
    const body = await readFile(createRequire(import.meta.url).resolve(name), 'utf8');
    return { status: 200, type, body };
  } catch {
    return { status: 200, type, body: '// elkjs is not installed: npm install elkjs\n' };
  }
}

const forkSchema = z.strictObject({
  session: z.string().min(1).max(500),
  entry: z.int().min(1),
  to: z.string().regex(/^[\w.:@-]{1,200}$/, 'expected an id of letters, digits and `_.:@-`'),
});

/** Returns the result of an action: the value, or the reason for the refusal. */
async function receiptOf(action: () => Promise<unknown>): Promise<Answer> {
  try {
    return json({ ok: true, value: (await action()) ?? null });
  } catch (error) {
    if (isA(error, OffstageError)) return json(refused(codeOf(error), messageOf(error)));
    throw error;
  }
}

const refused = (code: string, message: string) => ({ ok: false, code, message });

const policy = contentSecurityPolicy({
  script: "'self'",
  style: "'self'",
  connect: "'self'",
  img: 'data:',
});

function write(response: ServerResponse, { status, type, body }: Answer): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    ...pageHeaders,
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': policy,
  });
  response.end(body);
}

function wholeNumber(text: string | null): number | null {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : null;
}

/**
 * Returns the start of a session as a test file that runs with `node --test`.
 * @throws like `exportRecording`
 */
async function savedTest(
  scope: string,
  entries: readonly JournalEntry[],
): Promise<{ readonly name: string; readonly text: string }> {
  const recording = await exportRecording({ append() {}, read: () => entries }, scope);
  const lines = recording.trimEnd().split('\n');
  const title = JSON.stringify(`${scope} up to entry ${entries.length} leads to the same state`);
  return {
    name: `${scope.replaceAll(/[^\w-]+/g, '_').slice(0, 100)}-${entries.length}.test.ts`,
    text: `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRecording, parseRecording } from 'offstage/replay';

const lines = [
${lines.map((line) => `  ${JSON.stringify(line)},`).join('\n')}
];

test(${title}, () => {
  const recording = parseRecording(lines.join('\\n'), 'the recording of this test');
  assert.deepEqual(checkRecording(recording), null);
});
`,
  };
}
