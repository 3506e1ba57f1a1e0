// The whole demo in one call: a voice session with its agents, and the server of its page.

import type { LanguageModelV4 } from '@ai-sdk/provider';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import type { LocalVoiceOptions } from '../../src/adapters/local-voice/index.ts';
import { openaiRealtime } from '../../src/adapters/openai-realtime/index.ts';
import { messageOf } from '../../src/values/errors.ts';
import {
  VoiceSession,
  type Environment,
  type LeadAgent,
  type SessionHooks,
  type SubagentConfig,
  type Transport,
  type VoiceSessionOptions,
} from '../../src/index.ts';
import { leadAgent, nameOf } from './agents/lead-agent.ts';
import { reportGenerator } from './agents/report-generator.ts';
import { rideBooker } from './agents/ride-booker.ts';
import { tableBooker } from './agents/table-booker.ts';
import { createWorkshop } from './agents/workshop.ts';
import { createWorld } from './agents/world.ts';
import { openKept, type Kept } from './kept.ts';
import { chooseMinds, type Minds } from './minds.ts';
import { startDemoServer } from './server/demo-server.ts';
import type { ServerLimits } from './server/limits.ts';
import type { SessionFace } from './session-face.ts';
import type { About } from './shared/protocol.ts';
import { listed } from './brain/phrases.ts';
import { suggestions } from './suggestions.ts';
import { remoteTransport, type Variables } from './voices.ts';

export interface DemoOptions {
  /** The first port to try; the next free one is taken. 0: any. @defaultValue 8080 */
  readonly port?: number;
  /** @defaultValue real time and real chance */
  readonly environment?: Environment;
  /** Thinks for the subagents, and for the lead agent behind a local voice. @defaultValue what the environment variables say, else the demo's own rules */
  readonly model?: LanguageModelV4;
  /** Environment variables. @defaultValue process.env */
  readonly variables?: Variables;
  /** Transcriber and voice of the local pipeline. @defaultValue 'built-in' */
  readonly speech?: LocalVoiceOptions['speech'];
  /** The way to the voice model. @defaultValue what the environment variables say, else a local voice */
  readonly transport?: Transport;
  /** More options for the session, such as `inspect`, `limits` or `voice`. */
  readonly sessionOptions?: Partial<VoiceSessionOptions>;
  /** The folder in which the conversation and the link outlive this process. @defaultValue nothing is kept */
  readonly folder?: string;
  /** Multiplies the time that the subagents' work takes. @defaultValue 1 */
  readonly pace?: number;
  readonly limits?: Partial<ServerLimits>;
  /** Kills this process, when a page asks for it and the conversation is kept. @defaultValue pages cannot */
  readonly crash?: () => void;
  /** Makes the session, in place of a `VoiceSession`. */
  readonly createSession?: (parts: SessionParts) => SessionFace;
  /** Told of each step and of what goes wrong. @defaultValue nothing is told */
  readonly log?: (line: string) => void;
}

/** The parts of a demo session. */
export interface SessionParts {
  readonly lead: LeadAgent;
  readonly subagentConfigs: Readonly<Record<string, SubagentConfig>>;
}

export interface Demo {
  readonly url: string;
  readonly token: string;
  /** A shell command that calls the webhook. */
  readonly webhook: string;
  readonly about: About;
  readonly session: SessionFace;
  /** Ends everything that was started. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Starts the demo. The conversation begins when the first page is there.
 * @throws {ConfigurationError} when a port, a model or a package is missing.
 */
export async function startDemo(options: DemoOptions = {}): Promise<Demo> {
  const { environment = nodeEnvironment(), log = () => undefined, pace = 1 } = options;
  const minds = await chooseMinds({ ...options, environment });
  const kept = options.folder === undefined ? null : openKept(options.folder, environment);
  if (options.folder !== undefined && kept === null)
    log('Another demo has the kept conversation: nothing of this one is kept');
  const world = createWorld();
  const workshop = createWorkshop(environment, world, pace);
  const parts: SessionParts = {
    lead: leadAgent(world, () => session),
    subagentConfigs: {
      book_ride: rideBooker(workshop),
      book_table: tableBooker(workshop),
      generate_report: reportGenerator(workshop),
    },
  };
  const endings: (() => Promise<void>)[] = [];
  if (kept) endings.push(() => kept.close());
  const closeAll = async (): Promise<void> => {
    // Parts end in the reverse order of their start; one that fails to end must not keep the rest alive.
    for (let end = endings.pop(); end; end = endings.pop()) {
      await end().catch((error: unknown) => log(`While closing: ${messageOf(error)}`));
    }
  };
  let session: SessionFace;
  try {
    session = options.createSession
      ? options.createSession(parts)
      : await voiceSession(parts, minds, { ...options, environment, log, endings, kept });
    endings.push(() => session.close());
    sayWhatGoesOn(session, log);
    const server = await startDemoServer({
      session,
      world,
      environment,
      port: options.port ?? 8080,
      about: minds.about,
      suggestions,
      ...(kept && options.crash && { crash: options.crash }),
      ...(kept && { token: kept.token }),
      ...(options.limits && { limits: options.limits }),
      log,
    });
    endings.push(() => server.close());
    const { url, token, webhook } = server;
    return { url, token, webhook, about: minds.about, session, close: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

interface VoiceParts extends DemoOptions {
  readonly environment: Environment;
  readonly log: (line: string) => void;
  /** Parts that must end with the demo are added here. */
  readonly endings: (() => Promise<void>)[];
  readonly kept: Kept | null;
}

async function voiceSession(
  { lead, subagentConfigs }: SessionParts,
  minds: Minds,
  options: VoiceParts,
): Promise<SessionFace> {
  return new VoiceSession({
    transport: options.transport ?? (await chosenTransport(minds, options)),
    model: minds.subagentModel,
    agents: [lead],
    subagentConfigs,
    environment: options.environment,
    ...(options.kept && { sessionId: options.kept.sessionId, journal: options.kept.journal }),
    hooks: terminalHooks(options.log),
    ...options.sessionOptions,
  });
}

async function chosenTransport(
  { lead }: Minds,
  { environment, speech = 'built-in', variables = process.env, endings }: VoiceParts,
): Promise<Transport> {
  if (lead.voice !== 'local-voice') return remoteTransport(lead.voice, variables);
  const { localVoice } = await import('../../src/adapters/local-voice/index.ts');
  const voice = localVoice({ model: lead.model, environment, speech });
  endings.push(() => voice.close());
  const { url, apiKey } = await voice.start();
  return openaiRealtime({ url, apiKey });
}

/** After a crash: tells the terminal and the user what goes on. */
function sayWhatGoesOn(session: SessionFace, log: (line: string) => void): void {
  session.events.subscribe((event) => {
    if (event.type !== 'session.recovered') return;
    const seconds = Math.max(1, Math.round(event.downMs / 1000));
    const goesOn = session.subagents
      .list()
      .filter(({ endedAt }) => endedAt === null)
      .map((view) =>
        view.state === 'waiting_for_input' ? `${nameOf(view)}, which waits for you` : nameOf(view),
      );
    const work = goesOn.length === 0 ? 'Nothing was under way' : `I go on with ${listed(goesOn)}`;
    log(`Goes on after ${seconds} s, from ${event.entries} entries. ${work}.`);
    for (const { subagentId, reason } of event.lost) log(`${subagentId} is lost: ${reason}`);
    session.notifyBackground(
      `I was gone for ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. ${work}.`,
      {
        label: 'Back again',
      },
    );
  });
}

/** One line in the terminal for what happens offstage. */
function terminalHooks(log: (line: string) => void): SessionHooks {
  return {
    onSubagentStart: ({ name }) => log(`${name} starts`),
    onSubagentStep: ({ subagentName, stepNumber, toolCalls }) =>
      log(`${subagentName}, step ${stepNumber}: ${toolCalls.join(', ') || 'answers'}`),
    onSubagentEnd: ({ subagentName, outcome: { status, error } }) =>
      log(`${subagentName} ${status}${error ? `: ${error.message}` : ''}`),
    onError: (error, where) => log(`${where}: ${messageOf(error)}`),
  };
}
