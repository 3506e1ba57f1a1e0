// The model in a story of a tree. It makes each node's moves, one per call. Then it waits for the node's children,
// answers their questions, and finishes.

import { readNotes, readTask } from '../../src/actors/notes/note.ts';
import {
  scriptedModel,
  type ScriptedCall,
  type ScriptedPrompt,
  type ScriptedStep,
} from '../../src/testing/index.ts';
import { LEAD } from './text-talk.ts';
import type { Person, Stage } from './tree-stage.ts';
import { childrenAt, movesOf, type CallKind } from './tree-story.ts';
import { RUNTIMES_OWN } from './tree-tools.ts';

const CITIES = ['Berlin', 'Paris', 'Oslo', 'Rome', 'Lima', 'Cairo', 'Delhi', 'Quito'] as const;

/** Returns the two options of the question with this number. */
export function optionsOf(
  number: number,
): readonly { readonly id: string; readonly label: string }[] {
  return [0, 1].map((at) => {
    const label = CITIES[(number + at) % CITIES.length] as string;
    return { id: `${label.toLowerCase()}_${number}`, label };
  });
}

/** Creates one model for all nodes. It makes each node's moves, one per call. */
export function treeModel(stage: Stage) {
  const cursors = new Map<number, number>();
  return scriptedModel({
    environment: stage.environment,
    otherwise(prompt): ScriptedStep | Promise<ScriptedStep> {
      if (prompt.system.includes(LEAD)) return { text: 'I see.' };
      const index = nodeIn(prompt);
      const person = stage.playing(index);
      if (!person) throw new Error(`n${index} thinks, but nobody has spawned it`);
      const offered = prompt.toolNames.filter(
        (name) => !RUNTIMES_OWN.has(name) && !person.tools.has(name),
      );
      stage.expect(offered.length === 0, 'P8', () => `${person.id} is offered ${offered.join()}`);
      const at = cursors.get(index) ?? 0;
      cursors.set(index, at + 1);
      stage.count('model calls');
      if (
        readNotes(prompt.user).some(({ says }) => says.startsWith('What you may use is used up'))
      ) {
        stage.count('handed in at the last step');
        stage.lastCalls += 1;
        return { text: 'That is all I have.' };
      }
      return stepOf(stage, person, at, prompt);
    },
  });
}

function nodeIn({ system, prompt }: ScriptedPrompt): number {
  const args = JSON.stringify(readTask(prompt)?.arguments ?? {});
  const named = /<n(\d+)>/.exec(args) ?? /<n(\d+)>/.exec(system);
  return Number(named?.[1]);
}

function stepOf(
  stage: Stage,
  person: Person,
  at: number,
  prompt: ScriptedPrompt,
): ScriptedStep | Promise<ScriptedStep> {
  const { nodes } = stage.story;
  const node = nodes[person.node];
  const { calls = [], delayMs = 0 } = node?.moves[at] ?? {};
  const made = at < movesOf(nodes, person.node) ? childrenAt(nodes, person.node, at) : [];
  if (calls.some(({ kind }) => kind === 'model hangs')) {
    stage.count('models hung');
    return new Promise((_, reject) => {
      prompt.signal?.addEventListener('abort', () => reject(prompt.signal?.reason as Error));
    });
  }
  if (calls.some(({ kind }) => kind === 'model fails')) {
    stage.count('models failed');
    return { error: new Error('overloaded'), delayMs };
  }
  const wanted = [
    ...calls.map(({ kind, n }) => callOf(stage, person, kind, n)),
    ...made.map((child) => makes(stage, child)),
  ];
  if (wanted.length > 0) return { calls: wanted, delayMs, text: 'Let me see.' };
  return lastWords(stage, person);
}

/** Waits for the node's children if the story says so, and then answers. */
function lastWords(stage: Stage, person: Person): ScriptedStep {
  const node = stage.story.nodes[person.node];
  const mine = stage.live.filter(({ by }) => by === person.id);
  if (node?.waits && mine.length > 0) {
    const asking = mine.find(({ id }) => pendingOf(stage, id) !== null);
    if (asking) return { calls: [answerTo(stage, asking.id)] };
    return {
      calls: [{ name: 'await_subagent', input: { subagentIds: mine.map(({ id }) => id) } }],
    };
  }
  // The node ends its children or leaves that to the runtime.
  const [one] = mine;
  if (one && node && node.at > 0)
    return { calls: [{ name: 'kill_subagent', input: { subagentId: one.id } }] };
  return finalOf(stage, person);
}

function finalOf(stage: Stage, person: Person): ScriptedStep {
  const node = stage.story.nodes[person.node];
  if (node?.isHandedOver) return { text: '{"helped":true}' };
  if (node?.config.completion === 'tool')
    return { calls: [{ name: 'complete_task', input: { result: `n${person.node} is done` } }] };
  return { text: `n${person.node} is done` };
}

function pendingOf(stage: Stage, id: string): string | null {
  const report = stage.service.list({ subagentId: null }).find((each) => each.id === id);
  return report?.pendingRequest?.requestId ?? null;
}

function answerTo(stage: Stage, id: string): ScriptedCall {
  const inResponseTo = pendingOf(stage, id) ?? 'req_404';
  return {
    name: 'send_to_subagent',
    input: { subagentId: id, content: `A${stage.next()}`, inResponseTo },
  };
}

function makes(stage: Stage, child: number): ScriptedCall {
  const node = stage.story.nodes[child];
  if (node?.isHandedOver) return { name: 'subagent__helper', input: { node: `<n${child}>` } };
  const { tools, denied } = node?.grant ?? { tools: null, denied: [] };
  return {
    name: 'spawn_subagent',
    input: {
      task: `Do n${child}`,
      adapterName: `n${child}`,
      contextMode: child % 2 === 0 ? 'fork' : 'fresh',
      ...(tools ? { tools } : {}),
      ...(denied.length > 0 ? { disallowedTools: denied } : {}),
      ...(node?.workstream ? { workstreamId: node.workstream } : {}),
      ...(node?.maxDepth ? { maxDepth: node.maxDepth } : {}),
    },
  };
}

const HOW = ['ok', 'ok', 'slow', 'throws', 'hangs'] as const;

function callOf(stage: Stage, person: Person, kind: CallKind, n: number): ScriptedCall {
  const k = stage.next();
  const mine = stage.live.filter(({ by }) => by === person.id);
  const target = (n % 3 === 0 ? undefined : mine[n % mine.length]?.id) ?? stage.idOf(n);
  switch (kind) {
    case 'work':
      return { name: n % 2 ? 'alpha' : 'beta', input: { how: HOW[n % HOW.length], k } };
    case 'risk':
      return { name: 'risky', input: { k } };
    case 'choose': {
      const options = optionsOf(k);
      return {
        name: 'ask_user',
        input: { question: `Q${k}: ${options.map(({ label }) => label).join(' or ')}?`, options },
      };
    }
    case 'say what':
      return { name: 'ask_user', input: { question: `Q${k}: What shall it be?` } };
    case 'ask parent':
      return {
        name: 'request_input',
        input: { question: `R${k}?`, ...(n % 2 ? { timeoutMs: 1200 } : {}) },
      };
    case 'report':
      return { name: 'report_progress', input: { update: `Note ${k}`, percentComplete: n } };
    case 'await':
      return {
        name: 'await_subagent',
        input: {
          subagentIds: [...new Set([target, ...(n % 3 ? [] : [stage.idOf(n + 1)])])],
          mode: n % 2 ? 'any' : 'all',
          ...(n % 4 === 0 ? { timeoutMs: 1000 } : {}),
        },
      };
    case 'send':
      return {
        name: 'send_to_subagent',
        input: {
          subagentId: target,
          content: `M${k}`,
          mode: (['queue', 'steer', 'interrupt'] as const)[n % 3],
        },
      };
    case 'answer':
      return answerTo(stage, mine.find(({ id }) => pendingOf(stage, id))?.id ?? target);
    case 'check':
      return { name: 'check_subagent', input: { subagentId: target } };
    case 'kill':
      return { name: 'kill_subagent', input: { subagentId: target } };
    case 'hand in':
      return {
        name: 'complete_task',
        input: { result: `n${person.node} handed in`, summary: 'Done.' },
      };
    case 'model fails':
    case 'model hangs':
      throw new Error(`${kind} is no call`);
  }
}
