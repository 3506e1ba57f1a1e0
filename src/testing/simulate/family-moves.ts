// The moves of a generated model with subagents of its own: it starts them, waits for them, answers their
// questions, messages them, looks at them, and ends them; now and then it ignores them.
//
// Owns:     the calls of `createParentSubagentToolset`.
// Does not: know more of its subagents than its prompt says.

import type { Chance } from '../doubles/chance.ts';
import type { ScriptedCall, ScriptedPrompt } from '../doubles/scripted-model.ts';
import { readTask } from '../../actors/notes/note.ts';

/** Tools that need the id of a subagent, and are called for a reason. */
const ABOUT_SOMEBODY: ReadonlySet<string> = new Set([
  'await_subagent',
  'check_subagent',
  'send_to_subagent',
  'cancel_subagent',
  'kill_subagent',
]);
const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);
const CITIES = ['Berlin', 'Paris', 'Oslo', 'Rome', 'Lima', 'Cairo', 'Delhi', 'Quito'] as const;

/** The latest state of one of its subagents, as the model was told. */
interface Known {
  readonly subagentId: string;
  readonly status?: unknown;
  readonly pendingRequest?: { readonly messageId: string };
}

/** Returns the tools that may be called without knowing a subagent. */
export function ofNobody(tools: ScriptedPrompt['tools']): ScriptedPrompt['tools'] {
  return tools.filter(({ name }) => !ABOUT_SOMEBODY.has(name));
}

/** Returns the next call about the subagents that it has started; null: none. */
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

/** Returns the arguments of a call that its schema alone does not determine; null: it does. */
export function familyInput(
  name: string,
  { toolNames }: ScriptedPrompt,
  chance: Chance,
): object | null {
  if (name === 'request_input')
    return { question: `Which city for number ${chance.within(100, 999)}?` };
  if (name !== 'spawn_subagent') return null;
  // Mostly few tools: a subagent that may start others does so, too.
  const some = toolNames.filter((one) => one !== name && chance.happens(0.3));
  return {
    task: `Look around in ${chance.pick(CITIES)}, number ${chance.below(1000)}`,
    contextMode: chance.pick(['fork', 'fresh']),
    ...(chance.happens(0.9) && { tools: ofOthers(some) }),
  };
}

/** Tools that the runtime adds, or restricts to a role, cannot be handed on. */
function ofOthers(names: readonly string[]): readonly string[] {
  return names.filter((name) => !['ask_user', 'request_input', 'complete_task'].includes(name));
}

/** Returns its subagents by id, in the order of starting, from the results of its own calls. */
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
