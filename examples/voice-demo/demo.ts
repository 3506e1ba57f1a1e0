// The whole demo in one call: a voice session with its agents, and the server for its page.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Environment,
  memoryJournal,
  OffstageError,
  type SessionHooks,
  VoiceSession,
  type VoiceSessionOptions,
} from 'offstage';
import { nodeEnvironment } from 'offstage/node';
import type { LocalServer } from 'offstage/serve';
import { sqliteJournal } from 'offstage/sqlite-journal';
import { workingSound } from 'offstage/voice';
import { sayWhatResumes } from './agents/after-a-crash.ts';
import { leadAgent } from './agents/lead-agent.ts';
import { temporaryFolder } from './agents/menu-editor.ts';
import { subagentsIn } from './agents/subagents.ts';
import { createWorkshop } from './agents/workshop.ts';
import { createWorld } from './agents/world.ts';
import { chooseMinds, type MindOptions } from './rules/minds.ts';
import type { About } from './page/about.ts';
import { startDemoServer } from './server.ts';

export interface DemoOptions extends Partial<MindOptions> {
  /** The first port to try; if it is in use, the next free one is used. 0 means any free port. @defaultValue 8080 */
  readonly port?: number;
  /** Further options of the session, such as `inspect`, `limits` or `voice`. */
  readonly sessionOptions?: Partial<VoiceSessionOptions>;
  /** The folder that stores the conversation and the link after this process exits. @defaultValue nothing is stored */
  readonly folder?: string;
  /** Multiplies the durations of the subagents' tasks. @defaultValue 1 */
  readonly pace?: number;
  /** Kills this process when a page requests it, if the conversation is stored. @defaultValue pages cannot kill it */
  readonly crash?: () => void;
  /** Called with a line for each step and each error. @defaultValue nothing is logged */
  readonly log?: (line: string) => void;
}

export interface Demo extends Pick<LocalServer, 'url' | 'token' | 'inspectorUrl'> {
  readonly about: About;
  readonly session: VoiceSession;
  /** Stops everything that `startDemo` started. It can be called more than once. */
  close(): Promise<void>;
}

/**
 * Starts the demo. The conversation starts when the first page connects.
 * @throws {ConfigurationError} when a port, a model or a package is missing.
 */
export async function startDemo(options: DemoOptions = {}): Promise<Demo> {
  const { environment = nodeEnvironment(), log = () => undefined } = options;
  const { folder, port = 8080, pace = 1 } = options;
  const minds = await chooseMinds({ ...options, environment });
  const { transport, model, about } = minds;
  // The parts are stopped in the reverse order of their start. If one part fails to stop, the others are stopped
  // anyway.
  const endings: (() => unknown)[] = [() => minds.close()];
  const close = async (): Promise<void> => {
    for (let end = endings.pop(); end; end = endings.pop())
      await (async () => end())().catch((error) => log(`While closing: ${String(error)}`));
  };
  try {
    const file = folder === undefined ? null : openJournal(folder, environment);
    if (file) endings.push(() => file.close());
    else if (folder !== undefined)
      log('Another demo has the kept conversation: nothing of this one is kept');
    const kept = file && { folder, crash: options.crash };
    const journal = options.sessionOptions?.journal ?? file ?? memoryJournal();
    const menu = temporaryFolder(kept?.folder);
    endings.push(menu.remove);
    const world = createWorld();
    const session: VoiceSession = new VoiceSession({
      transport,
      // A sound during a tool call lets the user know that the connection is still there.
      thinkingSound: { loop: workingSound() },
      ...(transport.capabilities.speaksOutOfBand && { filler: {} }),
      model,
      agents: [leadAgent(world)],
      subagentConfigs: subagentsIn(createWorkshop(environment, world, pace), menu.path),
      environment,
      // There is one conversation at a time. After one has closed, the next starts under the same id.
      ...(file && { sessionId: 'voice_demo' }),
      journal,
      hooks: terminalHooks(log),
      ...options.sessionOptions,
    });
    endings.push(() => session.close());
    sayWhatResumes(session, log);
    const server = await startDemoServer({ session, journal, world, about, port, log, ...kept });
    endings.push(server.close);
    return { ...server, about, session, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The journal from which the session continues after a crash; null if another demo on this machine has it open. */
function openJournal(folder: string, environment: Environment) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    // A power failure may lose the last utterances.
    const path = join(folder, 'conversation.journal');
    return sqliteJournal({ path, environment, synchronous: 'normal' });
  } catch (error) {
    if (error instanceof OffstageError && error.code === 'JOURNAL_IN_USE') return null;
    throw error;
  }
}

/** One line in the terminal for everything that happens offstage. */
function terminalHooks(log: (line: string) => void): SessionHooks {
  return {
    onSubagentStart: ({ name }) => log(`${name} starts`),
    onSubagentStep: ({ subagentName, stepNumber, toolCalls }) =>
      log(`${subagentName}, step ${stepNumber}: ${toolCalls.join(', ') || 'answers'}`),
    onSubagentEnd: ({ subagentName, outcome: { status, error } }) =>
      log(`${subagentName} ${status}${error ? `: ${error.message}` : ''}`),
    onError: (error, where) => log(`${where}: ${String(error)}`),
  };
}
