// An app in one process of a simulated world. Its models are replaced and its tools are watched.
//
// Owns:     what the simulation changes in an app, and what the app's models say.
// Does not: run the app (world).

import { asSchema } from 'ai';
import type { EventSourceConfig } from '../../actors/ports/event-source.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { changed } from '../../values/plain-checks.ts';
import type { LeadCall } from '../conformance/lead-script.ts';
import type { Script as ModelScript, ScriptedPrompt } from '../doubles/scripted-model.ts';
import type { ScriptedLanguageModel } from '../doubles/scripted-steps.ts';
import type { SimulatedApp, SimulatedAppLike } from './log/app.ts';
import type { Effects } from './effects.ts';
import type { Faults } from './faults.ts';
import {
  callsFor,
  consentScript,
  failure,
  leadScript,
  modelIn,
  subagentIn,
  subagentScript,
  type Meanings,
} from './generated-model.ts';
import type { Happening } from './log/log.ts';
import type { SimulatedProcess } from '../doubles/simulated-process.ts';

const GONE_WITHIN_MS = 5000;

export interface AppStage {
  readonly seed: number;
  readonly app: SimulatedAppLike;
  /** The scripts that the models follow, by subagent name. A script is generated for each subagent that has none. */
  readonly models: Readonly<Record<string, ModelScript>>;
  readonly meanings: Meanings;
  readonly faults: Faults;
  readonly effects: Effects;
  note(happening: Happening): void;
}

/** Returns the app as it runs in this process. */
export function appIn(stage: AppStage, process: SimulatedProcess): SimulatedApp {
  const { app: given, seed, effects, faults } = stage;
  const simulated = <Config extends Partial<SubagentConfig>>(config: Config): Config =>
    configIn(stage, process, config);
  const context = { environment: process.ofApp, seed, simulated };
  const app = typeof given === 'function' ? given(context) : given;
  const agents = app.agents.map((agent) => ({
    ...agent,
    tools: (agent.tools ?? []).map((tool) => effects.watchInline(tool, process)),
  }));
  const configs = Object.entries(app.subagentConfigs ?? {}).map(
    ([name, config]) => [name, configIn(stage, process, config)] as const,
  );
  const services = app.services?.map(({ agent, eventSources, ...service }) => ({
    ...service,
    agent: configIn(stage, process, agent),
    eventSources: eventSources.map((source) => sourceIn(stage, source)),
  }));
  const channelsIn = (channels: NonNullable<SimulatedApp['reach']>['channels']) =>
    Object.fromEntries(
      Object.entries(channels).map(([name, channel]) => [
        name,
        effects.watchChannel(name, channel, process),
      ]),
    );
  return {
    ...app,
    ...(services && { services }),
    ...(app.consentModel && {
      consentModel: modelIn(
        { faults },
        process,
        consentScript(() => faults.strikes('consent.lies') !== null),
      ),
    }),
    ...(app.reach && { reach: { ...app.reach, channels: channelsIn(app.reach.channels) } }),
    agents,
    subagentConfigs: Object.fromEntries(configs),
  };
}

function configIn<Config extends Partial<SubagentConfig>>(
  stage: AppStage,
  process: SimulatedProcess,
  config: Config,
): Config {
  const { name = 'subagent', tools, createInstance } = config;
  return {
    ...config,
    model: subagentModelIn(stage, process, name),
    ...(tools && { tools: stage.effects.watch(tools, process) }),
    ...(createInstance && {
      createInstance: () => changed(createInstance(), (own) => configIn(stage, process, own)),
    }),
  };
}

/** Returns an event source that may also fail. */
function sourceIn({ faults }: AppStage, source: EventSourceConfig): EventSourceConfig {
  return {
    name: source.name,
    start(emit, signal, context) {
      const fails = faults.strikes('source.fails');
      const isGone = (): void => context.fail(failure('SOURCE_GONE', 'The source is gone'));
      if (fails)
        signal.addEventListener(
          'abort',
          context.environment.scheduler.schedule(isGone, fails.within(1, GONE_WITHIN_MS)),
        );
      return source.start(emit, signal, context);
    },
    stop: () => source.stop?.(),
  };
}

function subagentModelIn(stage: AppStage, process: SimulatedProcess, name: string) {
  const called = ({ toolNames }: ScriptedPrompt): void =>
    stage.note({ kind: 'model', name, toolNames });
  return modelIn({ faults: stage.faults, called }, process, scriptOf(stage, name));
}

function scriptOf({ seed, models }: AppStage, name: string): ModelScript {
  return models[name] ?? subagentScript(seed, name);
}

/**
 * Returns the session's model. It is used for the lead agent in a text session, for the delegations of a voice model,
 * and for every agent without its own model.
 */
export function sessionModelIn(stage: AppStage, process: SimulatedProcess): ScriptedLanguageModel {
  const { seed, faults, meanings } = stage;
  const lead = leadScript(seed, meanings);
  return modelIn(
    {
      faults,
      called(prompt) {
        const name = subagentIn(prompt);
        if (name !== null) stage.note({ kind: 'model', name, toolNames: prompt.toolNames });
      },
    },
    process,
    (prompt) => {
      const name = subagentIn(prompt);
      if (name !== null) return scriptOf(stage, name)(prompt);
      return faults.strikes('lead.empty') ? { text: '' } : lead(prompt);
    },
  );
}

/** Returns the calls that a voice model makes for the user's input. */
export function voiceCalls({ seed, meanings }: AppStage, { agents }: SimulatedApp) {
  const schemas = new Map(
    agents.flatMap(({ tools = [] }) =>
      tools.map(({ name, parameters }) => [name, asSchema(parameters).jsonSchema] as const),
    ),
  );
  return (words: string): readonly LeadCall[] | undefined => {
    const calls = callsFor(seed, words, meanings, (name) => schemas.get(name));
    return calls.length > 0 ? calls : undefined;
  };
}
