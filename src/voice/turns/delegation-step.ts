// Interprets a delegation of a voice model that only says "something is to be done": chooses the calls of the
// lead agent's tools, or the words to answer.
//
// Owns:     the single call of a text model for that, and the variant without a model.
// Does not: decide when to interpret, call tools, or talk to the voice model (delegations).

import type { LanguageModel, ModelMessage } from 'ai';
import { runModelStep } from '../../actors/model/model-step.ts';
import { knownJsonSchema, wrapSchema } from '../../actors/model/schema.ts';
import type { LeadAgent } from '../../actors/session/lead/lead-agent.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import { modelToolsOf } from '../../actors/session/lead/lead-tools.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { ConfigurationError, ProviderError } from '../../values/errors.ts';

/** The result of interpreting a delegation: calls, or words to say if there are none. */
export interface Meant {
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly text: string;
}

export interface DelegationRequest {
  /** The words understood so far of an unfinished utterance; may be empty. */
  readonly unfinished: string;
  readonly signal: AbortSignal;
}

/** Rejects with the model's error, or with `signal.reason`. */
export type WorkOut = (request: DelegationRequest) => Promise<Meant>;

const INSTRUCTIONS =
  'The conversation is spoken: a voice assistant talks to the user, and has handed over to you ' +
  'what they want done. You do not talk to the user yourself. Call the tools that their latest ' +
  'request needs, all of them at once; do not call again what was called for it already. If no ' +
  'tool is needed, or something is missing, answer in one or two sentences that can be said aloud.';

const REQUEST = note(sentence`The voice assistant asks what is to be done for the user now.`);

/** Runs one step of `model` over the conversation, with the tools of the current lead agent. */
export function withModel(core: LeadSession, model: LanguageModel): WorkOut {
  return async ({ unfinished, signal }) => {
    const { records, agents, host } = core;
    // The notes' role is that of the voice model's transport; providers of text models refuse a system
    // message in mid-conversation.
    const notes = core.notes.writtenAs('user');
    const { agentName } = records;
    const { ids, clock } = host.environment;
    const messages: ModelMessage[] = [
      ...records.conversation.toModelMessages({ notes }),
      ...(unfinished === '' ? [] : [{ role: 'user' as const, content: notes.guard(unfinished) }]),
      { role: 'user', content: notes.text(REQUEST, 'delegation request') },
    ];
    const { calls, text, finish } = await runModelStep({
      model,
      instructions: `${agents.instructionsOf(agentName)}\n\n${INSTRUCTIONS}`,
      messages,
      tools: { modelTools: modelToolsOf(agents.toolsOf(agentName)), execution: new Map() },
      signal,
      ids,
      clock,
    });
    // Calls of a response that was cut off may be incomplete and must not be run.
    if (finish === 'length')
      throw new ProviderError('INCOMPLETE', 'The answer reached the output limit of the model');
    return {
      text,
      calls: calls.map(({ toolName: name, input }) => ({
        name,
        arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
      })),
    };
  };
}

const NOTHING_TO_CALL = 'That is something I cannot do from here.';

/** Interprets without a model: the user's words are the task of the agent's only tool. */
export function withoutModel(core: LeadSession): WorkOut {
  return ({ unfinished }) => {
    const { records, agents } = core;
    const said =
      records.utteranceId === null ? undefined : records.conversation.get(records.utteranceId);
    const heard = said?.role === 'user' ? said.text : '';
    const task = [heard, unfinished].filter((words) => words !== '').join(' ');
    const [tool] = agents.toolsOf(records.agentName).values();
    const field = tool && taskField(tool.jsonSchema);
    if (!tool || field === null || field === undefined || task === '')
      return Promise.resolve({ calls: [], text: NOTHING_TO_CALL });
    const call = { name: tool.definition.name, arguments: JSON.stringify({ [field]: task }) };
    return Promise.resolve({ calls: [call], text: '' });
  };
}

/**
 * Checks that delegations of these agents can be interpreted without a model.
 * @throws {ConfigurationError} NO_DELEGATION_MODEL if not; the message names the tools that prevent it.
 */
export function checkDelegable(agents: readonly LeadAgent[]): void {
  for (const { name, tools = [] } of agents) {
    const [only] = tools;
    const count = tools.length + (agents.length > 1 ? 1 : 0);
    if (count === 0) continue;
    const schema = only && knownJsonSchema(wrapSchema(only.parameters, `tool "${only.name}"`));
    if (count === 1 && schema && taskField(schema) !== null) continue;
    const names = tools.map((tool) => `"${tool.name}"`).join(', ') || 'transfers';
    throw new ConfigurationError(
      'NO_DELEGATION_MODEL',
      `Expected \`delegationModel\` (or \`model\`) to be a language model, got undefined: this voice ` +
        `model delegates without naming a tool, and agent "${name}" has more to choose from than ` +
        `one tool that takes one required string (${names})`,
    );
  }
}

/** Returns the name of the tool's only required property if that is a string; null otherwise. */
function taskField(schema: Readonly<Record<string, unknown>> | null): string | null {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, { readonly type?: unknown; readonly enum?: unknown }>>;
    required?: readonly string[];
  };
  const [name, ...others] = required;
  if (name === undefined || others.length > 0) return null;
  const { type, enum: choices } = properties[name] ?? {};
  return type === 'string' && choices === undefined ? name : null;
}
