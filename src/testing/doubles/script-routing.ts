// Chooses the script of a call by its agent, so that a lead agent and its subagents, which run at the same
// time, never compete for the lines of one script.

import { ConfigurationError } from '../../values/errors.ts';
import type { CallOptions, ScriptedStep } from './scripted-steps.ts';

/** The call as a script sees it. */
export interface ScriptedPrompt {
  /** The system prompt. */
  readonly system: string;
  /** The last message of the user. */
  readonly user: string;
  /** The outputs of the last tool message, in order; empty if the last message is none. */
  readonly results: readonly unknown[];
  readonly prompt: CallOptions['prompt'];
  readonly toolNames: readonly string[];
  /** The tools that it may call now, with the JSON Schemas of the arguments. */
  readonly tools: readonly { readonly name: string; readonly inputSchema: unknown }[];
  /** The JSON Schema that the answer must match; null: none is requested. */
  readonly outputSchema: unknown;
  /** The number of the call within the script, from 1. */
  readonly turn: number;
  readonly signal: AbortSignal | undefined;
}

export type Script = (prompt: ScriptedPrompt) => ScriptedStep | Promise<ScriptedStep>;

/**
 * A function, or the answers in order (each may be a function of its own); a call beyond them fails with an
 * error that says so. Runs of the same agent share its list, in the order of their calls: where that matters,
 * use a function, which sees the call that it answers.
 */
export type ScriptLike = Script | readonly (ScriptedStep | Script)[];

type Seen = Omit<ScriptedPrompt, 'turn'>;

export interface ScriptedModelOptions {
  /** The first script whose `when` is in the system prompt, or accepts the call, answers. */
  readonly scripts?: readonly {
    readonly when: string | RegExp | ((prompt: Seen) => boolean);
    readonly script: ScriptLike;
  }[];
  /**
   * By the name of the agent, where none of `scripts` answers. A subagent is known by the task in its prompt
   * (`Execute tool: subagent__<name>`); any other agent by the name that stands first in the system prompt,
   * as a word of its own.
   */
  readonly agents?: Readonly<Record<string, ScriptLike>>;
  /** Returns the name of `agents` that speaks, instead of the rule above; undefined: none of them. */
  readonly agentOf?: (prompt: Seen) => string | undefined;
  /** Answers if no other script does. */
  readonly otherwise?: ScriptLike;
}

export interface RoutedScript {
  /** Names it in errors. */
  readonly name: string;
  readonly script: ScriptLike;
}

/** @throws {ConfigurationError} NO_SCRIPT, when no script answers this call. */
export function routeScript(options: ScriptedModelOptions, seen: Seen): RoutedScript {
  const { scripts = [], agents = {}, agentOf = nameIn(agents), otherwise } = options;
  const found = scripts.find(({ when }) => {
    if (typeof when === 'string') return seen.system.includes(when);
    // `test` would continue where a global expression has matched before.
    return typeof when === 'function' ? when(seen) : seen.system.search(when) >= 0;
  });
  if (found) return { name: String(found.when), script: found.script };
  const agent = agentOf(seen);
  if (agent !== undefined && Object.hasOwn(agents, agent))
    return { name: agent, script: agents[agent] as ScriptLike };
  if (otherwise) return { name: 'otherwise', script: otherwise };
  const known = Object.keys(agents);
  throw new ConfigurationError(
    'NO_SCRIPT',
    `scriptedModel: no script for the system prompt ${JSON.stringify(seen.system.slice(0, 200))}` +
      (known.length > 0 ? `; expected it to name one of ${known.join(', ')}` : ''),
  );
}

/** @throws {ConfigurationError} SCRIPT_EXHAUSTED, when the script has no step for this turn. */
export function stepOf(
  { name, script }: RoutedScript,
  prompt: ScriptedPrompt,
): ScriptedStep | Promise<ScriptedStep> {
  if (typeof script === 'function') return script(prompt);
  const step = script[prompt.turn - 1];
  if (step) return typeof step === 'function' ? step(prompt) : step;
  const last = JSON.stringify(prompt.prompt.at(-1)?.content ?? null).slice(0, 300);
  throw new ConfigurationError(
    'SCRIPT_EXHAUSTED',
    `scriptedModel: the script "${name}" has ${script.length} steps, but was asked for step ${prompt.turn}, to answer ${last}`,
  );
}

function nameIn(
  agents: Readonly<Record<string, ScriptLike>>,
): (prompt: Seen) => string | undefined {
  return ({ system }) => {
    const task = /^Execute tool: (?:subagent__)?(\S+)$/m.exec(system)?.[1];
    if (task !== undefined && Object.hasOwn(agents, task)) return task;
    let first: string | undefined;
    let earliest = Infinity;
    for (const name of Object.keys(agents)) {
      const at = wordIn(system, name);
      // Of two names that begin at the same place the longer one is meant.
      if (at > earliest || (at === earliest && name.length <= (first?.length ?? 0))) continue;
      if (at === Infinity) continue;
      first = name;
      earliest = at;
    }
    return first;
  };
}

/** Returns the index at which it stands as a word of its own; Infinity if it does not. */
function wordIn(text: string, word: string): number {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`).exec(text)?.index ?? Infinity;
}
