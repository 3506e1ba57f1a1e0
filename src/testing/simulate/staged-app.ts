// An app as one process of a simulated world runs it: its models are replaced, its tools watched.
//
// Owns:     what is changed of an app, and what its models say.
// Does not: run it (world).

import { asSchema } from 'ai';
import type { SubagentConfig } from '../../actors/subagent/config.ts';
import type { MindCall } from '../conformance/mind.ts';
import type { Script as ModelScript } from '../scripted-model.ts';
import type { ScriptedLanguageModel } from '../scripted-steps.ts';
import type { SimulatedApp, SimulatedAppLike } from './app.ts';
import type { Effects } from './effects.ts';
import type { Faults } from './faults.ts';
import { argumentsFor, leadScript, modelIn, subagentScript } from './generated-model.ts';
import type { Happening } from './log.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** What the user's words make the lead agent's model call. */
export type Meanings = ReadonlyMap<string, readonly string[]>;

export interface AppStage {
  readonly seed: number;
  readonly app: SimulatedAppLike;
  /** Scripts of models, by the name of the subagent; generated where there is none. */
  readonly models: Readonly<Record<string, ModelScript>>;
  readonly meanings: Meanings;
  readonly faults: Faults;
  readonly effects: Effects;
  note(happening: Happening): void;
}

/** The app, as this process makes it. */
export function appIn(stage: AppStage, process: SimulatedProcess): SimulatedApp {
  const { app: given, seed, effects } = stage;
  const app = typeof given === 'function' ? given({ environment: process.ofApp, seed }) : given;
  const [first, ...others] = app.agents.map((agent) => ({
    ...agent,
    tools: (agent.tools ?? []).map((tool) => effects.watchInline(tool, process)),
  }));
  const configs = Object.entries(app.subagentConfigs ?? {}).map(
    ([name, config]) => [name, configIn(stage, process, config)] as const,
  );
  return {
    ...app,
    agents: [first as SimulatedApp['agents'][0], ...others],
    subagentConfigs: Object.fromEntries(configs),
  };
}

function configIn(
  stage: AppStage,
  process: SimulatedProcess,
  config: SubagentConfig,
): SubagentConfig {
  const { seed, models, faults, effects } = stage;
  const { name, tools, createInstance } = config;
  const offered = (toolNames: readonly string[]): void =>
    stage.note({ kind: 'model', name, toolNames });
  return {
    ...config,
    model: modelIn({ faults, offered }, process, models[name] ?? subagentScript(seed, name)),
    ...(tools && { tools: effects.watch(tools, process) }),
    ...(createInstance && {
      createInstance: () => configIn(stage, process, createInstance()),
    }),
  };
}

/** The lead agent's model in a text session, and where a voice model delegates. */
export function leadModelIn(
  { seed, faults, meanings }: AppStage,
  process: SimulatedProcess,
): ScriptedLanguageModel {
  return modelIn(
    { faults },
    process,
    leadScript(seed, (words) => meanings.get(words) ?? []),
  );
}

/** What a voice model calls for the user's words. */
export function voiceCalls(
  { seed, meanings }: AppStage,
  { agents }: SimulatedApp,
): Readonly<Record<string, readonly MindCall[]>> {
  const schemas = new Map(
    agents.flatMap(({ tools = [] }) =>
      tools.map(({ name, parameters }) => [name, asSchema(parameters).jsonSchema] as const),
    ),
  );
  const calls = [...meanings].map(([words, names]) => [
    words,
    names.map((name) => ({ name, input: argumentsFor(seed, words, name, schemas.get(name)) })),
  ]);
  return Object.fromEntries(calls) as Record<string, readonly MindCall[]>;
}
