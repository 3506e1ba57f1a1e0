// Models that behave randomly, but as a real model could. A subagent's model calls its tools with arguments that fit
// their schemas, asks questions and returns a result. Sometimes it calls a tool that it does not have, or writes
// nonsense. A lead agent's model calls the tools that the user's input names, and repeats its messages word for word.
// If a model has subagents, it starts them, waits for them, answers their questions, sends them messages, checks on
// them and stops them. Sometimes it ignores them.
//
// Owns:     the text and the calls of the models.
// Does not: know whether the user hears a text.
//
// Invariants
//   GENERATED-MODEL-1. A model's answer depends only on the seed, the name, the task and the number of earlier answers.
//       A request that is repeated after a crash or failure therefore gets the same answer.

import { parsedOrText, propertiesOf } from '../../values/json.ts';
import { ProviderError } from '../../values/errors.ts';
import { chanceOf, type Chance } from '../doubles/chance.ts';
import { readTask } from '../../actors/notes/note.ts';
import { RUNNING_TASK } from '../../actors/session/lead/work.ts';
import { isUnfinished, replyTo, restOf, type LeadCall } from '../conformance/lead-script.ts';
import { isPlainNo, isPlainYes, questionAnswered } from '../conformance/words.ts';
import {
  scriptedModel,
  type Script,
  type ScriptedCall,
  type ScriptedLanguageModel,
  type ScriptedPrompt,
  type ScriptedStep,
} from '../doubles/scripted-model.ts';
import type { Faults } from './faults.ts';
import { SLOW_MS } from './log/fault-points.ts';
import type { SimulatedProcess } from '../doubles/simulated-process.ts';

const SILENT_MS = 90_000;
const THINKING_MS = 1500;
/** A service's agent may have nothing to report. */
const NOTHING_TO_TELL = '{"notify": false}';
/** No agent has this tool. */
const FORBIDDEN = 'transfer_all_funds';

export interface ModelWorld {
  readonly faults: Faults;
  /** Called with every prompt. */
  readonly called?: (prompt: ScriptedPrompt) => void;
}

/** Creates a model that lives in one process. It follows a script, has faults and takes time to think. */
export function modelIn(
  { faults, called }: ModelWorld,
  process: SimulatedProcess,
  script: Script,
): ScriptedLanguageModel {
  return scriptedModel({
    environment: process.environment,
    rules: true,
    async otherwise(prompt) {
      // The caller died with the process, so the call never settles.
      if (!process.isAlive) return new Promise<never>(() => {});
      called?.(prompt);
      if (faults.strikes('model.silent'))
        return { error: failure('OVERLOADED', 'The model did not answer'), delayMs: SILENT_MS };
      if (faults.strikes('model.fails'))
        return { error: failure('OVERLOADED', 'The model is overloaded') };
      const slow = faults.strikes('model.slow');
      const step = await script(prompt);
      return slow ? { ...step, delayMs: (step.delayMs ?? 0) + slow.within(1, SLOW_MS) } : step;
    },
  });
}

export function failure(code: string, message: string): ProviderError {
  return new ProviderError(code, message, { retryable: true });
}

/** Returns the script for the subagent with this name. */
export function subagentScript(seed: number, name: string): Script {
  return (prompt) => {
    const task = taskIn(prompt);
    const turn = prompt.prompt.filter(({ role }) => role === 'assistant').length;
    const chance = chanceOf(seed, 'model', name, task, turn);
    const step = stepOf(name, task, turn, prompt, chance);
    return { ...step, delayMs: chance.below(THINKING_MS) };
  };
}

/** Returns the name of the subagent whose task this prompt contains, or null if it is a lead agent's prompt. */
export function subagentIn({ system }: ScriptedPrompt): string | null {
  return (
    /^# Task\nYou do the work of the tool (?:subagent__)?(.*?) in the background/m.exec(
      system,
    )?.[1] ?? null
  );
}

/** Returns the schema of the subagent's result from its instructions, or null if they contain none. */
function resultSchemaIn({ system, outputSchema }: ScriptedPrompt): unknown {
  const told = /JSON that fits this JSON Schema:\n(.*)/.exec(system)?.[1];
  return told === undefined ? outputSchema : JSON.parse(told);
}

function taskIn({ prompt, user }: ScriptedPrompt): string {
  const read = readTask(prompt);
  if (read === null) return user.slice(0, 400);
  const { task, arguments: args } = read;
  if (Object.keys(args).length === 0) return task.slice(0, 400);
  // A subagent's random decisions depend on this text. If its form changed, the stored seeds would play differently.
  return JSON.stringify(args, null, 1).replaceAll(/\n\s*/g, ' ');
}

function stepOf(
  name: string,
  task: string,
  turn: number,
  prompt: ScriptedPrompt,
  chance: Chance,
): ScriptedStep {
  const { tools } = prompt;
  const move = tools.length === 0 ? null : familyMove(prompt, chance);
  const callable = withoutSubagent(tools);
  const isDone = callable.length === 0 || chance.happens(0.2 + 0.25 * turn);
  if (move || !isDone) {
    const calls = [move ?? callOf(chance.pick(callable), prompt, chance)];
    if (chance.happens(0.2)) calls.push(callOf(chance.pick(callable), prompt, chance));
    if (chance.happens(0.03)) calls.push({ name: FORBIDDEN, input: { amount: chance.below(100) } });
    // GENERATED-MODEL-1: the ids stay the same too.
    return { calls: calls.map((call, at) => ({ ...call, id: `call_${turn + 1}_${at + 1}` })) };
  }
  if (readTask(prompt.prompt)?.task.includes(NOTHING_TO_TELL) && chance.happens(0.3))
    return { text: NOTHING_TO_TELL };
  const schema = resultSchemaIn(prompt);
  const found = chanceOf(0, name, task).within(1000, 9999);
  const result = schema ? valueFor(schema, chance) : `${name} has found ${found}`;
  const handsIn = tools.find((tool) => tool.name === 'complete_task');
  if (handsIn && chance.happens(0.5)) return { calls: [{ name: handsIn.name, input: { result } }] };
  return { text: typeof result === 'string' ? result : JSON.stringify(result) };
}

function callOf(
  { name, inputSchema }: ScriptedPrompt['tools'][number],
  prompt: ScriptedPrompt,
  chance: Chance,
): ScriptedCall {
  // Sometimes a model writes invalid JSON.
  if (chance.happens(0.02)) return { name, input: '{"oops' };
  if (name === 'ask_user') return { name, input: questionOf(chance) };
  return { name, input: familyInput(name, prompt, chance) ?? valueFor(inputSchema, chance) };
}

const COLOURS = ['Red', 'Green', 'Blue', 'Yellow', 'White', 'Black'] as const;

function questionOf(chance: Chance): object {
  const number = chance.within(100, 999);
  if (chance.happens(0.25)) return { question: `What shall number ${number} be called?` };
  const first = chance.below(COLOURS.length);
  const options = [0, 1].map((at) => {
    const label = COLOURS[(first + at) % COLOURS.length] as string;
    return { id: label.toLowerCase(), label };
  });
  const labels = options.map(({ label }) => label);
  return { question: `Which colour for number ${number}: ${labels.join(' or ')}?`, options };
}

/** For each input of the user, the tools that the lead agent's model calls. */
export type Meanings = ReadonlyMap<string, readonly string[]>;

/** Patterns for "Yes, but" with other arguments, the rest of a request, and questions and commands about a task. */
const CHANGE = /^Yes, but with (\{.*\})$/;
const REST = / \(after "(.+)"\)$/;
const STEER = /^(How far is|Stop|Tell) (\w+)/;

/** Returns the calls that the lead agent's model makes for this input. The list is empty if the input needs no call. */
export function callsFor(
  seed: number,
  words: string,
  meanings: Meanings,
  schemaOf: (tool: string) => unknown,
): readonly LeadCall[] {
  const changed = CHANGE.exec(words)?.[1];
  if (changed !== undefined)
    return [{ name: 'settle_question', input: { action: 'change', text: changed, quote: words } }];
  return (meanings.get(words) ?? []).map((name) => ({
    name,
    input: argumentsFor(seed, words, name, schemaOf(name)),
  }));
}

/** Returns the arguments of the lead agent's tool call for this input. */
function argumentsFor(
  seed: number,
  words: string,
  tool: string,
  schema: unknown,
): Readonly<Record<string, unknown>> {
  const [, wish = '', task] = STEER.exec(words) ?? [];
  if (tool === RUNNING_TASK && wish === 'Tell') return { action: 'tell', task, words };
  if (tool === RUNNING_TASK) return { action: wish === 'Stop' ? 'stop' : 'status', task };
  const before = REST.exec(words)?.[1];
  const begun = propertiesOf(valueFor(schema, chanceOf(seed, 'call', before ?? words, tool)));
  if (before === undefined) return begun;
  return Object.fromEntries(
    Object.entries(begun).map(([name, value]) => [
      name,
      typeof value === 'string' ? `${value}, ${words}` : value,
    ]),
  );
}

/** The script of a lead agent in a text session. */
export function leadScript(seed: number, meanings: Meanings): Script {
  return ({ prompt, results, tools }) => {
    const known = new Map(tools.map((tool) => [tool.name, tool.inputSchema]));
    const meant = (text: string): readonly LeadCall[] =>
      callsFor(seed, text, meanings, (name) => known.get(name));
    const said = prompt.flatMap(wordsIn);
    const isTold = prompt.at(-1)?.role === 'tool';
    const fresh = prompt.slice(prompt.findLastIndex(({ role }) => role === 'assistant') + 1);
    const notes = fresh.flatMap(notesIn);
    const made = new Set(prompt.flatMap((message) => callsIn(message, notStartedIn(prompt))));
    const asked = prompt
      .filter(({ role }) => role === 'user')
      .flatMap(wordsIn)
      .filter((words) => !words.startsWith('['));
    const owed = asked.filter(
      (words) =>
        !said.some((text) => text.startsWith(replyTo('').slice(0, -1)) && text.includes(words)) &&
        !prompt.flatMap(notesIn).some((note) => questionAnswered(note, words)),
    );
    // If the prompt contains a request and its continuation, the model makes only one call. It makes none before the
    // user has finished.
    const isBegun = (words: string): boolean => owed.some((rest) => REST.exec(rest)?.[1] === words);
    const further = isTold
      ? results.flatMap((output) => restOf(propertiesOf(output), asked.at(-1) ?? '') ?? [])
      : [];
    const calls = owed
      .filter((words) => !isBegun(words) && !owed.some(isUnfinished))
      .flatMap(meant)
      .concat(further)
      .filter(
        ({ name, input }) => known.has(name) && !made.has(`${name} ${JSON.stringify(input)}`),
      );
    if (calls.length > 0) return { calls };
    const news = notes.filter((note) => !/(?:answered|did not settle) a subagent/.test(note));
    // While the model delivers news that the user did not request, it does not call a tool or reply to an input.
    const words = tools.length > 0 || news.length === 0 ? owed : [];
    const answers = words.filter((text) => meant(text).length === 0);
    const text = [
      ...(isTold ? results.map((result) => `It says: ${gistOf(result)}.`) : []),
      ...(answers.length > 0 ? [replyTo(answers.join(' and '))] : []),
      ...news,
    ];
    return { text: text.length > 0 ? text.join(' ') : 'Well.' };
  };
}

/**
 * A model that interprets an utterance about an approval (`consentModel`): a plain yes and a plain no. `lies`: whether
 * it misinterprets another utterance as a yes.
 */
export function consentScript(lies: () => boolean): Script {
  return ({ system, user }) => {
    const data = propertiesOf(parsedOrText(/^\[data[^\]]*\] (.*)$/m.exec(user)?.[1] ?? ''));
    const words = String(data['words']);
    const mayLie = / the words are a plain yes/.test(system) && !isPlainNo(words);
    const isYes = isPlainYes(words) || (mayLie && lies());
    const otherwise = isPlainNo(words) ? 'the words refuse' : 'the words are about something else';
    const line = isYes ? 'the words are a plain yes' : otherwise;
    return {
      text: JSON.stringify({ result: new RegExp(`^(\\S+): ${line}`, 'm').exec(system)?.[1] }),
    };
  };
}

/** Returns a short description of a tool's answer. */
function gistOf(result: unknown): string {
  const { message } = propertiesOf(result);
  if (typeof message === 'string') return message;
  return typeof result === 'string' ? result : JSON.stringify(result);
}

type Message = ScriptedPrompt['prompt'][number];

function wordsIn(message: Message): readonly string[] {
  if (message.role === 'system') return [message.content];
  if (message.role === 'tool') return [];
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

/** Returns the runtime's notes in a user or system message. */
function notesIn(message: Message): readonly string[] {
  if (message.role !== 'user' && message.role !== 'system') return [];
  return wordsIn(message).filter((text) => text.startsWith('['));
}

function callsIn(message: Message, except: ReadonlySet<string>): readonly string[] {
  if (message.role !== 'assistant') return [];
  return message.content.flatMap((part) =>
    part.type === 'tool-call' && !except.has(part.toolCallId)
      ? [`${part.toolName} ${JSON.stringify(part.input)}`]
      : [],
  );
}

/** Returns the calls that were not started because the user continued to speak. */
function notStartedIn(prompt: readonly Message[]): ReadonlySet<string> {
  const parts = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  const refused = parts.flatMap((part) =>
    part.type === 'tool-result' && JSON.stringify(part.output).includes('"not_started"')
      ? [part.toolCallId]
      : [],
  );
  return new Set(refused);
}

/** Tools that need the id of a subagent. The model calls them only when it has a reason. */
const NEEDS_SUBAGENT: ReadonlySet<string> = new Set([
  'await_subagent',
  'check_subagent',
  'send_to_subagent',
  'cancel_subagent',
  'kill_subagent',
]);

const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);

const CITIES = ['Berlin', 'Paris', 'Oslo', 'Rome', 'Lima', 'Cairo', 'Delhi', 'Quito'] as const;

/** The latest state that the model knows of one of its subagents. */
interface Known {
  readonly subagentId: string;
  readonly status?: unknown;
  readonly pendingRequest?: { readonly messageId: string };
}

/** Returns the tools that can be called without the id of a subagent. */
export function withoutSubagent(tools: ScriptedPrompt['tools']): ScriptedPrompt['tools'] {
  return tools.filter(({ name }) => !NEEDS_SUBAGENT.has(name));
}

/** Returns the model's next call about one of its subagents, or null if it makes none. */
export function familyMove(
  { prompt, toolNames }: ScriptedPrompt,
  chance: Chance,
): ScriptedCall | null {
  if (!toolNames.includes('await_subagent')) return null;
  const live = [...knownIn(prompt).values()].filter(({ status }) => !ENDED.has(status));
  const [first] = live;
  if (!first || !chance.happens(0.9)) return null;
  const asks = live.find(({ pendingRequest }) => pendingRequest);
  if (asks?.pendingRequest && chance.happens(0.8))
    return {
      name: 'send_to_subagent',
      input: {
        subagentId: asks.subagentId,
        content: `Take ${chance.pick(CITIES)}, number ${chance.below(1000)}`,
        inResponseTo: asks.pendingRequest.messageId,
      },
    };
  const { subagentId } = chance.pick(live);
  const kind = chance.next();
  if (kind < 0.1) return { name: 'check_subagent', input: { subagentId } };
  if (kind < 0.2) {
    const mode = chance.pick(['queue', 'steer', 'interrupt'] as const);
    const content = `Remember ${chance.pick(CITIES)}, number ${chance.below(1000)}`;
    return { name: 'send_to_subagent', input: { subagentId, content, mode } };
  }
  if (kind < 0.28) return { name: 'cancel_subagent', input: { subagentId } };
  if (live.length === 1) return { name: 'await_subagent', input: { subagentId } };
  const subagentIds = live.map((one) => one.subagentId);
  return { name: 'await_subagent', input: { subagentIds, mode: chance.pick(['any', 'all']) } };
}

/** Returns the arguments of this call if its schema is not enough to generate them. Otherwise returns null. */
export function familyInput(
  name: string,
  { toolNames }: ScriptedPrompt,
  chance: Chance,
): object | null {
  if (name === 'request_input')
    return { question: `Which city for number ${chance.within(100, 999)}?` };
  if (name !== 'spawn_subagent') return null;
  // Usually passes only a few tools. If the subagent can start others, passes them these tools as well.
  const some = toolNames.filter((one) => one !== name && chance.happens(0.3));
  return {
    task: `Look around in ${chance.pick(CITIES)}, number ${chance.below(1000)}`,
    contextMode: chance.pick(['fork', 'fresh']),
    ...(chance.happens(0.9) && { tools: ofOthers(some) }),
  };
}

/** Returns the tools that can be passed to a child: all except those that the runtime adds or restricts to a role. */
function ofOthers(names: readonly string[]): readonly string[] {
  return names.filter(
    (name) => !['ask_user', 'not_for_me', 'request_input', 'complete_task'].includes(name),
  );
}

/** Reads the model's subagents from its call results. Returns them by id, in the order in which they were started. */
function knownIn(prompt: ScriptedPrompt['prompt']): ReadonlyMap<string, Known> {
  const known = new Map<string, Known>();
  const begins = prompt.findLastIndex((message) => readTask([message]) !== null);
  const mine = new Set<string>();
  for (const message of prompt.slice(begins + 1)) {
    if (message.role !== 'tool') continue;
    for (const part of message.content) {
      if (part.type !== 'tool-result' || part.output.type !== 'json') continue;
      const value = part.output.value as Partial<Known> | null;
      const { subagents = [], alsoAsking = [] } = (value ?? {}) as Lists;
      if (part.toolName === 'spawn_subagent' && value?.subagentId) mine.add(value.subagentId);
      for (const one of [value, ...subagents, ...alsoAsking])
        if (one?.subagentId !== undefined && mine.has(one.subagentId))
          known.set(one.subagentId, one as Known);
    }
  }
  return known;
}

interface Lists {
  readonly subagents?: readonly Partial<Known>[];
  readonly alsoAsking?: readonly Partial<Known>[];
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly default?: unknown;
}

const WORDS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heron'] as const;
/** A schema may refer to itself, but a value must be finite. */
const MAX_DEPTH = 6;

/**
 * Generates a value that a JSON Schema allows. It considers the keywords that tool schemas use, so a model could have
 * written the values as arguments. The value may violate a schema's other keywords.
 */
export function valueFor(schema: unknown, chance: Chance, depth = 0): unknown {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH) return null;
  const given = schema as JsonSchema;
  if ('const' in given) return given.const;
  if (given.enum && given.enum.length > 0) return chance.pick(given.enum);
  const choices = given.anyOf ?? given.oneOf;
  if (choices && choices.length > 0) return valueFor(chance.pick(choices), chance, depth + 1);
  if (given.allOf && given.allOf.length > 0)
    return Object.assign(
      {},
      ...given.allOf.map((part) => valueFor(part, chance, depth + 1)),
    ) as unknown;
  switch ((typeof given.type === 'string' ? given.type : given.type?.[0]) ?? 'object') {
    case 'string':
      return `${chance.pick(WORDS)} ${chance.below(100)}`.padEnd(given.minLength ?? 0, 'x');
    case 'integer':
      return Math.floor(numberFor(given, chance));
    case 'number':
      return numberFor(given, chance);
    case 'boolean':
      return chance.happens(0.5);
    case 'null':
      return null;
    case 'array': {
      const least = given.minItems ?? 0;
      const length = chance.within(least, Math.min(given.maxItems ?? least + 2, least + 2));
      return Array.from({ length }, () => valueFor(given.items ?? {}, chance, depth + 1));
    }
    default:
      return given.properties ? objectFor(given, chance, depth) : {};
  }
}

function objectFor(
  { properties = {}, required = [] }: JsonSchema,
  chance: Chance,
  depth: number,
): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [name, of] of Object.entries(properties))
    if (required.includes(name) || chance.happens(0.3))
      value[name] = valueFor(of, chance, depth + 1);
  return value;
}

function numberFor({ minimum, exclusiveMinimum, maximum }: JsonSchema, chance: Chance): number {
  const least = minimum ?? (exclusiveMinimum === undefined ? 0 : exclusiveMinimum + 1);
  const most = Math.max(least, Math.min(maximum ?? least + 100, least + 100));
  return chance.within(Math.ceil(least), Math.floor(most));
}
