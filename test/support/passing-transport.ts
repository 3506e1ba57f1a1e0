// A voice model whose connections end early. Some can be resumed where they ended, some refuse to resume, and some
// receive the conversation with their first message. The model remembers what each connection knows, so that a test can
// find messages that are missing or arrived twice.

import type { Random } from '../../src/entries/journal.ts';
import { readNotes } from '../../src/testing/index.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportConfiguration,
  TransportContext,
  TransportEvent,
} from '../../src/voice/connection/transport.ts';
import { FakeConnection, FakeTransport } from './fake-transport.ts';

/** The state from which a resumed connection continues. */
interface Token {
  readonly of: FakeConnection;
  readonly number: number;
}

const idOf = (said: TransportCommand | TransportEvent): string | null => {
  const { type } = said;
  if (type === 'message.add' || type === 'assistant.transcribed') return said.itemId;
  if (type === 'utterance.transcribed') return said.utteranceId;
  if (type === 'tool.recall' || type === 'tool.called') return said.callId;
  return type === 'tool.answer' ? `${said.callId} answered` : null;
};

export class PassingTransport extends FakeTransport {
  readonly #random: Random;
  readonly #knew = new Map<FakeConnection, readonly string[]>();
  readonly #happened = new Map<FakeConnection, string[]>();
  readonly #refused = new Set<unknown>();
  readonly violations: string[] = [];
  #tokens = 0;
  #history: (() => readonly TransportCommand[]) | null = null;

  constructor(random: Random, capabilities: Partial<TransportCapabilities>) {
    super(capabilities);
    this.#random = random;
  }

  override connect(configuration: TransportConfiguration, context: TransportContext) {
    const connection = new FakeConnection(configuration, context);
    this.connections.push(connection);
    // The first connection asks for the history, which can be consumed only once.
    this.#history ??= context.history ?? null;
    const happened: string[] = [];
    this.#happened.set(connection, happened);
    connection.events.subscribe((event) => {
      const id = idOf(event);
      if (id !== null) happened.push(id);
    });
    const token = context.resume as Token | undefined;
    const chance = this.#random.next();
    // CONNECTION-MANAGER-3: no two connections hear the user.
    if (token && !token.of.isClosed) this.violations.push('two go on from one');
    if (this.#refused.has(token)) this.violations.push('what was refused is tried again');
    if (token && chance < 0.3) {
      this.#refused.add(token);
      this.#soon(connection, {
        type: 'transport.closed',
        code: 1007,
        reason: 'no such session',
        retryable: true,
      });
    } else if (token && chance < 0.8) {
      this.#knew.set(connection, this.knownTo(token.of));
      this.#soon(connection, { type: 'transport.ready', resumed: true });
    } else if (chance % 0.2 < 0.1) {
      const taken = connection.takeHistory().map((command) => idOf(command) ?? '');
      this.#knew.set(connection, taken);
      this.#soon(connection, { type: 'transport.ready', told: true });
    } else this.#soon(connection, { type: 'transport.ready' });
    return connection;
  }

  /** Reports whether the connection in use can be resumed. */
  offer(resumable: boolean): void {
    const of = this.inUse;
    const resume: Token | null = resumable ? { of, number: (this.#tokens += 1) } : null;
    of.events.next({ type: 'transport.resumable', resume });
  }

  /** Returns the ids that this connection knows. */
  knownTo(connection: FakeConnection): readonly string[] {
    const told = connection.commands.map(idOf).filter((id) => id !== null);
    return [
      ...(this.#knew.get(connection) ?? []),
      ...told,
      ...(this.#happened.get(connection) ?? []),
    ];
  }

  /**
   * Returns the messages that the current connection received although it already knew them, and the messages of the
   * conversation that it does not know.
   */
  get mistold(): { readonly twice: readonly string[]; readonly missing: readonly string[] } {
    const { inUse } = this;
    const known = new Set(this.knownTo(inUse));
    const told = inUse.commands.map(idOf).filter((id) => id !== null);
    const knew = new Set(this.#knew.get(inUse));
    const history = this.#history?.() ?? [];
    const notes = readNotes(
      history
        .flatMap((command) =>
          command.type === 'message.add' && (command.role === 'system' || command.isNote === true)
            ? [command.text]
            : [],
        )
        .join('\n'),
    );
    // The session informs the model that typed text was for a subagent.
    const wasForOther = (command: TransportCommand): boolean =>
      command.type === 'message.add' &&
      command.role === 'user' &&
      command.isNote !== true &&
      notes.some(
        ({ says, quotes }) =>
          /(?:answered|did not settle) a subagent/.test(says) && quotes['words'] === command.text,
      );
    return {
      twice: told.filter((id, index) => knew.has(id) || told.indexOf(id) !== index),
      missing: history
        .filter((command) => !wasForOther(command))
        .map((command) => idOf(command) ?? '')
        .filter((id) => !known.has(id)),
    };
  }

  #soon(connection: FakeConnection, event: TransportEvent): void {
    void Promise.resolve().then(() => {
      if (connection.isClosed) return;
      connection.events.next(event);
      if (event.type === 'transport.closed') connection.events.complete();
    });
  }
}
