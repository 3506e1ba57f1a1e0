// The origin of the text that a model reads: how much of the recorded calls of test/readings comes from the app and how
// much from the runtime, in tokens of four characters each (no tokenizer: the share is a share of characters).
//
// The app's text: its instructions, its tools and their schemas, words of the user and of the models, calls of its
// tools, results, and the material of a subagent. The runtime's text: all else, including the whole notes of a turn
// (the open questions, the work), although they quote text of others.

import { readRecording } from '../../test/readings/recording.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';

/** A piece of a call. */
interface Piece {
  readonly isOfApp: boolean;
  /** The kind of text, such as `tool settle_question`. */
  readonly kind: string;
  readonly chars: number;
}

/** The text that the models of a conversation have read, in characters. */
export interface ModelInputShare {
  readonly calls: number;
  readonly all: Side;
  /**
   * Without the beginning that a call shares with an earlier call of the same model: the text that no provider's cache
   * holds.
   */
  readonly fresh: Side;
  /** All text by kind, the largest first. */
  readonly kinds: readonly (Piece & { readonly freshChars: number })[];
}

interface Side {
  app: number;
  runtime: number;
}

const CHARS_PER_TOKEN = 4;
export const tokensOf = (chars: number): number => Math.round(chars / CHARS_PER_TOKEN);

/** Returns the runtime's share in percent. */
export function percent({ app, runtime }: Side): number {
  return (100 * runtime) / (app + runtime);
}

/** The runtime's tools that the conversations offer. */
const OWN_TOOLS = new Set([
  'settle_question',
  'transfer_to_agent',
  'ask_user',
  'not_for_me',
  'report_progress',
  'request_input',
  'complete_task',
  'spawn_subagent',
  'check_subagent',
  'send_to_subagent',
  'await_subagent',
  'kill_subagent',
  'list_subagents',
  'cancel_subagent',
]);

/** Notes whose quotations also appear elsewhere. */
const REPEATS = /^(Open questions|The user has just|The work in the background)/;

/** Returns the shares of one conversation, for all models or those whose name passes. */
export function modelInput(
  name: string,
  isCounted: (who: string) => boolean = () => true,
): ModelInputShare {
  const all: Side = { app: 0, runtime: 0 };
  const fresh: Side = { app: 0, runtime: 0 };
  const kinds = new Map<string, { isOfApp: boolean; chars: number; freshChars: number }>();
  const seen: (readonly string[])[] = [];
  let counted = 0;
  for (const { who, after, keeps, reads } of readRecording(name).calls) {
    const kept = after === null ? [] : (seen[after] ?? []).slice(0, keeps);
    const blocks = [...kept, ...blocksIn(reads)];
    seen.push(blocks);
    if (!isCounted(who)) continue;
    counted += 1;
    for (const [index, block] of blocks.entries())
      for (const { isOfApp, kind, chars } of piecesOf(block)) {
        const side = isOfApp ? 'app' : 'runtime';
        const freshChars = index < keeps ? 0 : chars;
        all[side] += chars;
        fresh[side] += freshChars;
        const sum = kinds.get(kind) ?? { isOfApp, chars: 0, freshChars: 0 };
        sum.chars += chars;
        sum.freshChars += freshChars;
        kinds.set(kind, sum);
      }
  }
  return {
    calls: counted,
    all,
    fresh,
    kinds: Array.from(kinds, ([kind, sum]) => ({ kind, ...sum })).toSorted(
      (a, b) => b.chars - a.chars,
    ),
  };
}

/** `call-text.ts` of the readings begins each block with its role. */
function blocksIn(lines: readonly string[]): readonly string[] {
  const blocks: string[] = [];
  for (const line of lines)
    if (/^<<.+>>$/.test(line)) blocks.push(line);
    else blocks.push(`${blocks.pop() ?? ''}\n${line}`);
  return blocks;
}

function piecesOf(block: string): readonly Piece[] {
  const [head = '', ...lines] = block.split('\n');
  const text = lines.join('\n');
  if (head === '<<tools>>') return toolPieces(lines);
  if (head === '<<system>>' && !/^\[(note|data) /.test(text)) return systemPieces(text);
  if (head === '<<the answer must be JSON>>') return [app('instructions', text)];
  return messagePieces(lines);
}

const app = (kind: string, text: string): Piece => ({
  isOfApp: true,
  kind: `app: ${kind}`,
  chars: text.length,
});

const own = (kind: string, text: string): Piece => ({
  isOfApp: false,
  kind,
  chars: text.length,
});

/** Returns the pieces of a tool, with its schema in the line below. */
function toolPieces(lines: readonly string[]): readonly Piece[] {
  let name = '';
  return lines.map((line) => {
    name = /^(\w+): /.exec(line)?.[1] ?? name;
    return OWN_TOOLS.has(name) ? own(`tool ${name}`, line) : app('tools', line);
  });
}

function systemPieces(text: string): readonly Piece[] {
  let heading = '';
  return text.split('\n').map((line) => {
    if (/^# |^Delegation policy/.test(line)) heading = line.replace(/:.*/, '');
    const tool = /^- (\w+): /.exec(line)?.[1];
    if (tool !== undefined && heading === 'Delegation policy')
      return OWN_TOOLS.has(tool) ? own(`tool ${tool}`, line) : app('tools', line);
    const isApps = (heading === '' || heading === '# Instructions') && !line.startsWith('# ');
    return isApps ? app('instructions', line) : own(`system prompt: ${heading}`, line);
  });
}

function messagePieces(lines: readonly string[]): readonly Piece[] {
  let says = '';
  return lines.flatMap((line): readonly Piece[] => {
    const called = /^-> calls (\w+) /.exec(line)?.[1];
    if (called === 'ask_user' || called === 'settle_question') {
      const said = leavesOf(JSON.parse(line.slice(line.indexOf('{'), line.lastIndexOf('}') + 1)));
      return [
        { ...app('words', ''), chars: said },
        { ...own(`call of ${called}`, ''), chars: line.length - said },
      ];
    }
    if (called !== undefined)
      return [OWN_TOOLS.has(called) ? own(`call of ${called}`, line) : app('calls', line)];
    const [, answers, value = ''] = /^result of (\w+) \(.*?\): (.*)$/.exec(line) ?? [];
    if (answers !== undefined) return resultPieces(answers, value);
    if (line.startsWith('[note ')) {
      says = line.replace(/^\[.*?\] /, '');
      return [own(`note: ${beginningOf(says)}`, line)];
    }
    if (!/^\[data[ \]]/.test(line)) return [app('words', line)];
    if (REPEATS.test(says)) return [own(`note: ${beginningOf(says)}`, line)];
    const json = line.slice(line.indexOf(']') + 2);
    const quoted = leavesOf(JSON.parse(json));
    return [
      { ...app('quoted', ''), chars: quoted },
      { ...own('frame of quotations', ''), chars: line.length - quoted },
    ];
  });
}

function resultPieces(name: string, value: string): readonly Piece[] {
  if (name === 'ask_user' || name === 'not_for_me') {
    const words = leavesOf(JSON.parse(value));
    return [
      { ...app('words', ''), chars: words },
      { ...own(`result of ${name}`, ''), chars: value.length - words },
    ];
  }
  if (OWN_TOOLS.has(name)) return [own(`result of ${name}`, value)];
  if (!value.startsWith('{"status":"still_in_progress"')) return [app('results', value)];
  const { message } = JSON.parse(value) as { readonly message: string };
  return [
    app('results', message),
    { ...own('result of a background call', ''), chars: value.length - message.length },
  ];
}

/** Counts the characters of all texts in a value, except those that only the runtime writes. */
function leavesOf(value: unknown, key = ''): number {
  if (typeof value === 'string')
    return /^(action|questionId|optionId)$/.test(key) ? 0 : value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  for (const [name, each] of Object.entries(value)) sum += leavesOf(each, name);
  return sum;
}

function beginningOf(text: string): string {
  return text.split(' ').slice(0, 7).join(' ');
}

function sharesOfChat(): Promise<Numbers> {
  const { all, fresh } = modelInput('chat');
  const lead = modelInput('chat', (who) => who === 'lead');
  return Promise.resolve({
    share: percent(all),
    share_lead: percent(lead.all),
    share_fresh: percent(fresh),
    tokens: tokensOf(all.app + all.runtime),
  });
}

/** The floor is the app's text in tokens: the input of a bare loop with the same calls. */
export const modelInputOfChat: Measurement = {
  contenders: {
    offstage: sharesOfChat,
    floor: () => Promise.resolve({ tokens: tokensOf(modelInput('chat').all.app) }),
  },
  sizes: [25],
  repetitions: 1,
  lines: [
    { figure: 'model_input_share', unit: '%', number: 'share', floor: null, goal: { value: 35 } },
    { figure: 'model_input_share_lead', unit: '%', number: 'share_lead', floor: null, goal: null },
    {
      figure: 'model_input_share_fresh',
      unit: '%',
      number: 'share_fresh',
      floor: null,
      goal: null,
    },
    { figure: 'model_input', unit: 'tokens', number: 'tokens', floor: 'floor', goal: null },
  ],
};
