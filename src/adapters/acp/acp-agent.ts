// An Offstage session as an agent that speaks the Agent Client Protocol (ACP), version 1. An editor starts the program
// and communicates with the session over stdio. For the opposite direction, see acp-relay.ts.
//
// Owns:     the sessions that the editor has opened, and their turns (`served-session.ts`).
// Does not: create sessions (the program does), or use the editor's files and terminals.
//
// Invariants
//   ACP-AGENT-1. When the editor disconnects, its sessions are suspended rather than ended. A session is resumed when
//       the editor opens its id.

import type * as Sdk from '@agentclientprotocol/sdk';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import process from 'node:process';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { aFunction, anObject, check, type ChecksOf } from '../../values/checks.ts';
import { codeOf, ConfigurationError, messageOf } from '../../values/errors.ts';
import { loadSdk } from './load-sdk.ts';
import { ServedSession, type EditorAbilities, type SessionForEditor } from './served-session.ts';
import { reporter } from '../../values/reporter.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';

/** A session that the editor opens. */
export interface AcpSessionRequest {
  /** The id of a session to resume from the journal; absent for a new session. */
  readonly sessionId?: string;
  /** The editor's project folder, an absolute path. */
  readonly cwd: string;
  /** The W3C trace context of the editor's request, for the session option with the same name. @defaultValue none */
  readonly traceparent?: string;
}

/** The options of `acpAgent`. */
export interface AcpAgentOptions {
  /**
   * Creates a session without starting it. The session must have the id `sessionId` if one is given. It needs a journal
   * to be resumable.
   */
  readonly open: (request: AcpSessionRequest) => SessionForEditor | Promise<SessionForEditor>;
  /** @defaultValue 'offstage' */
  readonly name?: string;
  /** @defaultValue standard input, which only this agent may read */
  readonly input?: Readable;
  /** @defaultValue standard output; only this agent may write to it, so log to standard error */
  readonly output?: Writable;
  /** Called with non-fatal errors. @defaultValue such errors are ignored */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The running agent that `acpAgent` returns. */
export interface AcpAgent {
  /** Resolves when the editor has disconnected and its sessions are suspended. */
  readonly closed: Promise<void>;
  /** Ends the agent. */
  close(): Promise<void>;
}

const optionsSchema = z.strictObject({
  open: aFunction,
  name: z.string().min(1).optional(),
  input: anObject('a stream to read', 'pipe').optional(),
  output: anObject('a stream to write', 'write').optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<AcpAgentOptions>);

/**
 * Serves sessions to an editor over the Agent Client Protocol. Needs the package `@agentclientprotocol/sdk`.
 * @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_DEPENDENCY` (rejects).
 */
export async function acpAgent(options: AcpAgentOptions): Promise<AcpAgent> {
  check('acpAgent(options)', optionsSchema, options);
  return new Agent(await loadSdk('acpAgent'), options);
}

class Agent implements AcpAgent {
  readonly closed: Promise<void>;
  readonly #sdk: typeof Sdk;
  readonly #options: AcpAgentOptions;
  readonly #report: (error: unknown, where: string) => void;
  readonly #connection: Sdk.AgentConnection;
  /** The sessions by id, including sessions that are being opened. */
  readonly #sessions = new Map<string, Promise<ServedSession>>();
  #abilities: EditorAbilities = { forms: false };

  constructor(sdk: typeof Sdk, options: AcpAgentOptions) {
    const { name = 'offstage', input = process.stdin, output = process.stdout } = options;
    const { agent, methods, ndJsonStream } = sdk;
    this.#sdk = sdk;
    this.#options = options;
    this.#report = reporter(options.onError);
    // Where the DOM's types are loaded too, they differ from Node's in what a reader accepts.
    const received = Readable.toWeb(input) as ReadableStream<Uint8Array>;
    this.#connection = agent({ name })
      .onRequest(methods.agent.initialize, ({ params }) => {
        this.#abilities = { forms: Boolean(params.clientCapabilities?.elicitation?.form) };
        return {
          protocolVersion: 1,
          agentInfo: { name, version: OFFSTAGE_VERSION },
          agentCapabilities: {
            loadSession: true,
            promptCapabilities: { embeddedContext: true },
            sessionCapabilities: { resume: {}, close: {} },
          },
          authMethods: [],
        };
      })
      .onRequest(methods.agent.session.new, async ({ params: { cwd, _meta } }) => {
        const served = await this.#open({ cwd, ...tracedBy(_meta) });
        return { sessionId: served.id };
      })
      .onRequest(methods.agent.session.resume, async ({ params: { sessionId, cwd } }) => {
        await this.#takeUp(sessionId, cwd);
        return {};
      })
      .onRequest(methods.agent.session.load, async ({ params: { sessionId, cwd } }) => {
        const served = await this.#takeUp(sessionId, cwd);
        await served.replay();
        return {};
      })
      .onRequest(methods.agent.session.close, async ({ params: { sessionId } }) => {
        const served = await this.#known(sessionId);
        this.#sessions.delete(sessionId);
        await served.leave();
        return {};
      })
      .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt, _meta } }) => {
        const served = await this.#known(sessionId);
        const text = wordsOf(prompt);
        if (text.trim() === '')
          throw sdk.RequestError.invalidParams({ reason: 'the prompt has no words' });
        try {
          return { stopReason: await served.prompt(text, tracedBy(_meta)) };
        } catch (error) {
          throw sdk.RequestError.internalError({ reason: messageOf(error) });
        }
      })
      .onNotification(methods.agent.session.cancel, async ({ params: { sessionId } }) => {
        (await this.#sessions.get(sessionId))?.cancel();
      })
      .connect(ndJsonStream(Writable.toWeb(output), received));
    this.closed = this.#connection.closed.then(() => this.#leaveAll());
  }

  async close(): Promise<void> {
    this.#connection.close();
    await this.closed;
  }

  async #open(request: AcpSessionRequest): Promise<ServedSession> {
    const session = await this.#options.open(request);
    const { sessionId } = request;
    if (sessionId !== undefined && session.id !== sessionId)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `acpAgent({ open }): expected the session "${sessionId}", got "${session.id}": pass \`sessionId\` on`,
      );
    const { client } = this.#connection;
    const { methods } = this.#sdk;
    const served = new ServedSession(session, {
      abilities: this.#abilities,
      report: this.#report,
      update: (update) =>
        client.notify(methods.client.session.update, { sessionId: session.id, update }),
      permission: (request_, signal) =>
        client.request(
          methods.client.session.requestPermission,
          { ...request_, sessionId: session.id },
          { cancellationSignal: signal },
        ),
      form: (request_, signal) =>
        client.request(
          methods.client.elicitation.create,
          { ...request_, sessionId: session.id },
          { cancellationSignal: signal },
        ),
    });
    if (sessionId === undefined) this.#sessions.set(session.id, Promise.resolve(served));
    await session.start({ ifKnown: sessionId !== undefined });
    // The editor has disconnected in the meantime.
    if (this.#connection.signal.aborted) await served.leave();
    return served;
  }

  /** Opens a session once, even if several requests ask for it. */
  async #takeUp(sessionId: string, cwd: string): Promise<ServedSession> {
    const opening = this.#sessions.get(sessionId) ?? this.#open({ sessionId, cwd });
    this.#sessions.set(sessionId, opening);
    try {
      return await opening;
    } catch (error) {
      this.#sessions.delete(sessionId);
      if (codeOf(error) === 'UNKNOWN_SESSION')
        throw this.#sdk.RequestError.resourceNotFound(sessionId);
      this.#report(error, `session ${sessionId}`);
      throw this.#sdk.RequestError.internalError({ reason: messageOf(error) });
    }
  }

  #known(sessionId: string): Promise<ServedSession> {
    const known = this.#sessions.get(sessionId);
    if (known) return known;
    throw this.#sdk.RequestError.resourceNotFound(sessionId);
  }

  /** ACP-AGENT-1 */
  async #leaveAll(): Promise<void> {
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    const left = await Promise.allSettled(all.map(async (served) => (await served).leave()));
    for (const one of left)
      if (one.status === 'rejected') this.#report(one.reason, 'a session that was left');
  }
}

/** Returns the trace context of the editor's request, if it has one. */
function tracedBy(meta: Readonly<Record<string, unknown>> | null | undefined) {
  const traceparent = readTraceparent(meta?.['traceparent']);
  return traceparent === undefined ? {} : { traceparent };
}

/** Returns the text of a prompt. Embedded resources are replaced by their URLs. */
function wordsOf(prompt: readonly ContentBlock[]): string {
  return prompt
    .flatMap((block) => {
      if (block.type === 'text') return [block.text];
      if (block.type === 'resource_link') return [`[${block.name}](${block.uri})`];
      if (block.type === 'resource' && 'text' in block.resource)
        return [`${block.resource.uri}:\n"""\n${block.resource.text}\n"""`];
      return [];
    })
    .join('\n');
}
