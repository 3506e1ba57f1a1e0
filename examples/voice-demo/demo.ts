// The whole demo in one call: a voice session with its agents, and the server of its page.

import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  VoiceSession,
  type Environment,
  type SessionHooks,
  type Transport,
  type VoiceSessionOptions,
} from 'offstage';
import type { LocalVoiceOptions } from 'offstage/local-voice';
import { nodeEnvironment } from 'offstage/node';
import { openaiRealtime } from 'offstage/openai-realtime';
import type { ServeLimits } from 'offstage/serve';
import { workingSound } from 'offstage/voice';
import { leadAgent, nameOf } from './agents/lead-agent.ts';
import { subagentsIn } from './agents/subagents.ts';
import { createWorkshop } from './agents/workshop.ts';
import { createWorld } from './agents/world.ts';
import { listed } from './brain/phrases.ts';
import { openKept } from './kept.ts';
import { chooseMinds, type Minds } from './minds.ts';
import type { About } from './page/about.ts';
import { startDemoServer } from './server/demo-server.ts';
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
  readonly limits?: Partial<ServeLimits>;
  /** Kills this process, when a page asks for it and the conversation is kept. @defaultValue pages cannot */
  readonly crash?: () => void;
  /** Told of each step and of what goes wrong. @defaultValue nothing is told */
  readonly log?: (line: string) => void;
}

export interface Demo {
  readonly url: string;
  readonly token: string;
  readonly about: About;
  readonly session: VoiceSession;
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
  const endings: (() => Promise<void>)[] = kept ? [() => kept.close()] : [];
  const closeAll = async (): Promise<void> => {
    // Parts end in the reverse order of their start; one that fails to end must not keep the rest alive.
    for (let end = endings.pop(); end; end = endings.pop())
      await end().catch((error: unknown) => log(`While closing: ${String(error)}`));
  };
  try {
    const world = createWorld();
    const workshop = createWorkshop(environment, world, pace);
    const transport =
      options.transport ?? (await chosenTransport(minds, options, environment, endings));
    const session: VoiceSession = new VoiceSession({
      transport,
      // While a tool works nobody takes the silence for a lost connection.
      thinkingSound: { loop: workingSound() },
      ...(transport.capabilities.speaksOutOfBand && { filler: {} }),
      model: minds.subagentModel,
      agents: [leadAgent(world, () => session)],
      subagentConfigs: subagentsIn(workshop),
      environment,
      ...(kept && { sessionId: kept.sessionId, journal: kept.journal }),
      hooks: terminalHooks(log),
      ...options.sessionOptions,
    });
    endings.push(() => session.close());
    sayWhatGoesOn(session, log);
    const { url, token, close } = await startDemoServer({
      session,
      world,
      port: options.port ?? 8080,
      about: minds.about,
      ...(kept && options.crash && { crash: options.crash }),
      ...(kept && { token: kept.token }),
      ...(options.limits && { limits: options.limits }),
      log,
    });
    endings.push(close);
    return { url, token, about: minds.about, session, close: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function chosenTransport(
  { lead }: Minds,
  { speech = 'built-in', variables = process.env }: DemoOptions,
  environment: Environment,
  endings: (() => Promise<void>)[],
): Promise<Transport> {
  if (lead.voice !== 'local-voice') return remoteTransport(lead.voice, variables);
  const { localVoice } = await import('offstage/local-voice');
  const voice = localVoice({ model: lead.model, environment, speech });
  endings.push(() => voice.close());
  const { url, apiKey } = await voice.start();
  return openaiRealtime({ url, apiKey });
}

/** After a crash: tells the terminal and the user what goes on. */
function sayWhatGoesOn(session: VoiceSession, log: (line: string) => void): void {
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
    onError: (error, where) => log(`${where}: ${String(error)}`),
  };
}
