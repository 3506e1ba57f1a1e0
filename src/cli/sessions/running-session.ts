// The session of a running process. A command reaches it as a client of the process's `serve`.

import type { BudgetLimits } from '../../actors/contracts/config.ts';
import type { SessionState } from '../../actors/contracts/session-views.ts';
import { connect, type ConnectOptions, type SessionClient } from '../../client/index.ts';
import type { GivenAnswer } from '../../actors/subagent/ask-user.ts';
import type { MessageMode } from '../../machines/index.ts';
import { OffstageError } from '../../values/errors.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import { cell, COLUMNS, fitted } from '../replay/lines.ts';
import { usageRows } from '../replay/story.ts';

/** An action in a session. */
export type Deed =
  | { readonly type: 'answer'; readonly requestId: string; readonly answer: GivenAnswer }
  | { readonly type: 'cancel'; readonly subagentId: string; readonly reason: string }
  | {
      readonly type: 'message';
      readonly subagentId: string;
      readonly text: string;
      readonly mode: MessageMode;
    }
  /** `subagentId` is null for the session's budget. */
  | { readonly type: 'raise'; readonly subagentId: string | null; readonly limits: BudgetLimits };

/** The receipt for an action. */
export type Receipt =
  | {
      readonly accepted: true;
      readonly by?: string;
      readonly messageId?: string;
      /** The new totals for a budget's limits. */
      readonly limits?: BudgetLimits;
    }
  | { readonly accepted: false; readonly reason: string };

/** The time limit for the server's first answer and for each receipt. */
const PATIENCE_MS = 15_000;
/** The connections that a client tries: a WebSocket, then a stream. */
const WIRES = 2;

export class RunningSession {
  readonly #client: SessionClient;

  private constructor(client: SessionClient) {
    this.#client = client;
  }

  /** @throws {OffstageError} `CONNECT_FAILED`, or the server's refusal. {ConfigurationError} `INVALID_URL`. */
  static async connect(options: ConnectOptions): Promise<RunningSession> {
    const client = connect(options);
    const session = new RunningSession(client);
    let attempts = 0;
    const opened = new Promise<void>((resolve, reject) => {
      const look = (): void => {
        const { state, reason } = client.status.get();
        if (state === 'open') resolve();
        if (state === 'waiting') attempts += 1;
        if (state === 'closed' || attempts >= WIRES) {
          const { code = 'CONNECT_FAILED', message = 'nobody answers' } = reason ?? {};
          reject(new OffstageError(code, `Cannot connect to ${hostOf(options.url)}: ${message}`));
          return;
        }
        // Try the other kind of connection immediately.
        if (state === 'waiting') client.reconnect();
      };
      client.status.subscribe(look);
      look();
    });
    try {
      const silent = `Cannot connect to ${hostOf(options.url)}: it does not answer`;
      await within(opened, new OffstageError('CONNECT_FAILED', silent));
    } catch (error) {
      client.close();
      throw error;
    }
    return session;
  }

  get state(): SessionState & { readonly sessionId: string | null } {
    return { sessionId: this.#client.status.get().sessionId, ...this.#client.store.get().context };
  }

  get summary() {
    const { sessionId, connection, subagents, questions } = this.state;
    return {
      sessionId,
      connection,
      subagents: subagents.filter(({ endedAt }) => endedAt === null).length,
      questions: questions.filter(({ state }) => OPEN.has(state)).length,
    };
  }

  get line(): string {
    const { sessionId, connection, subagents, questions } = this.summary;
    return `${sessionId ?? ''}: ${connection}, ${subagents} subagents at work, ${questions} questions open\n`;
  }

  get picture(): string {
    const {
      sessionId,
      connection,
      floor,
      agent,
      questions,
      subagents,
      deliveries,
      transcript,
      usage,
    } = this.state;
    const rows = (title: string, lines: readonly string[]): string =>
      `\n${title}\n${(lines.length > 0 ? lines : ['none']).map((text) => `  ${text}\n`).join('')}`;
    const row = (name: string, state: string, text: string): string =>
      `${cell(name, 24)} ${cell(state, 20)} ${fitted(text, COLUMNS - 50)}`.trimEnd();
    return [
      `${sessionId ?? ''}: ${connection}, the floor is ${floor}, ${agent ?? 'nobody'} leads\n`,
      ...usageRows(usage).map((text) => `${text}\n`),
      rows(
        'questions',
        questions.map(({ requestId, state, subagentName, question }) =>
          row(requestId, state, `${subagentName}: ${question}`),
        ),
      ),
      rows(
        'subagents',
        subagents.map(({ id, name, state, outcome }) =>
          row(`${name} ${id}`, state, outcome?.error?.message ?? outcome?.text ?? ''),
        ),
      ),
      rows(
        'deliveries',
        deliveries.map(({ deliveryId, kind, state, text }) =>
          row(deliveryId, state, `${kind}: ${text}`),
        ),
      ),
      rows(
        'transcript',
        transcript.map(({ role, text }) => `${cell(role, 12)} ${fitted(text, COLUMNS - 15)}`),
      ),
    ].join('');
  }

  /** @throws {OffstageError} the session's refusal, or `FATE_UNKNOWN` if no receipt arrives (rejects). */
  async perform(deed: Deed): Promise<Receipt> {
    const late = 'The session did not send a receipt: look at it before you try again';
    return within(this.#perform(deed), new OffstageError('FATE_UNKNOWN', late));
  }

  async #perform(deed: Deed): Promise<Receipt> {
    const client = this.#client;
    const { user } = client.status.get();
    const by = user === null ? {} : { by: user };
    switch (deed.type) {
      case 'answer': {
        const { requestId, answer } = deed;
        const { optionId, text, approved, input, lasts } = answer;
        // An operator who answers has read the question.
        await client.questionShown(requestId);
        return client.answer(
          requestId,
          optionId !== undefined
            ? { optionId }
            : text !== undefined
              ? { text }
              : {
                  approved: approved === true,
                  ...(input !== undefined && { input }),
                  ...(lasts && { lasts }),
                },
        );
      }
      case 'cancel': {
        const isCancelled = await client.cancel(deed.subagentId, deed.reason);
        return isCancelled ? { accepted: true, ...by } : { accepted: false, reason: 'over' };
      }
      case 'raise': {
        const raised = await client.raiseBudget(deed.subagentId, deed.limits);
        if (!raised.ok) return { accepted: false, reason: raised.error.message };
        const limits = Object.entries(raised.budget).map(([name, use]) => [name, use.granted]);
        return { accepted: true, limits: Object.fromEntries(limits) as BudgetLimits, ...by };
      }
      case 'message': {
        const sent = await client.message(deed.subagentId, deed.text, deed.mode);
        return sent.ok
          ? { accepted: true, messageId: sent.messageId, ...by }
          : { accepted: false, reason: sent.error.message };
      }
    }
  }

  close(): void {
    this.#client.close();
  }
}

const OPEN: ReadonlySet<string> = new Set(['queued', 'presenting', 'open', 'held', 'parked']);

/** Returns only the host: a URL may contain a secret in its query, or a user name and a password. */
function hostOf(url: string | URL): string {
  return URL.parse(String(url))?.host ?? 'the address';
}

/** Rejects with `late` if the promise does not settle in time. */
function within<T>(promise: Promise<T>, late: OffstageError): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = nodeEnvironment().scheduler.schedule(() => reject(late), PATIENCE_MS);
    promise.then(resolve, reject).finally(cancel);
  });
}
