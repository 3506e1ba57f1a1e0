// The scripted voice model of a fake server: it repeats the news that it receives, calls the tool for a ride, tells a
// joke, and remembers its calls. It works on every wire, although each wire sends news in a different form.

import { readNotes } from '../../../src/testing/index.ts';
import type {
  FakeItem,
  VoiceResponder,
  VoiceCause,
} from '../../../src/testing/voice-server/index.ts';

export const JOKE = 'Why did the actor get lost? Nobody had given it an address.';

/** The message of a running tool. */
const working = /"message\\?":\s*\\?"([^"\\]*)/;
/** A typed message on a wire that has no role for it. */
const typed = /^The user writes: "(.*)"$/s;

/** OpenAI Live separates replies by pauses of 800 ms, so the model must wait at least that long. */
const LIVE_PAUSE_MS = 1000;

export function createLeadResponder(): VoiceResponder {
  const called = new Set<string>();
  return ({ cause, instructions, model }) => {
    const told = toldOf(cause, instructions, model.items);
    const words = cause.type === 'utterance' ? cause.text : lastWords(model.items);
    const news = newsIn(told);
    if (news === null && /\bride\b/.test(words) && !called.has(words)) {
      called.add(words);
      return [{ call: 'book_ride', arguments: { destination: 'the airport' } }];
    }
    const say = { say: news ?? replyTo(words) };
    return model.wire === 'openai-live' ? [{ waitMs: LIVE_PAUSE_MS }, say] : [say];
  };
}

function newsIn(told: string): string | null {
  const notes = readNotes(told);
  for (const { quotes } of notes)
    if (typeof quotes['question'] === 'string') {
      const options = (quotes['options'] ?? []) as readonly {
        label: string;
        description?: string;
      }[];
      const labels = options.map(({ label, description }) =>
        description === undefined ? label : `${label} (${description})`,
      );
      return `${quotes['question']} ${labels.join('; ')}`;
    }
  const result = notes.map(({ quotes }) => quotes['result']).find((text) => text !== undefined);
  if (typeof result === 'string') return result;
  const message = working.exec(told)?.[1];
  if (message !== undefined) return message;
  return told.includes('Greet the user') ? 'Hello. I can book you a ride.' : null;
}

function replyTo(words: string): string {
  if (/\bjoke\b/.test(words)) return JOKE;
  return /\bthank/i.test(words) ? 'You are welcome.' : 'I see.';
}

/** The news to repeat, which a wire sends with the request or shortly before it. */
function toldOf(
  cause: VoiceCause,
  instructions: string | null,
  items: readonly FakeItem[],
): string {
  // What the user said aloud is answered first.
  if (cause.type === 'utterance') return instructions ?? '';
  const spoke = items.findLastIndex((item) => item.kind === 'message' && item.role === 'assistant');
  return [instructions ?? '', textOf(cause), ...items.slice(spoke + 1).map(textIn)].join('\n');
}

function textOf(cause: VoiceCause): string {
  if (cause.type === 'nothing') return '';
  return cause.type === 'result' ? written(cause.output) : cause.text;
}

function textIn(item: FakeItem): string {
  if (item.kind === 'message') return item.text;
  return item.kind === 'result' ? written(item.output) : '';
}

function written(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output);
}

/** The last thing that the user said or typed. */
function lastWords(items: readonly FakeItem[]): string {
  for (const item of items.toReversed()) {
    if (item.kind !== 'message') continue;
    const words = typed.exec(item.text)?.[1];
    if (words !== undefined) return words;
    if (item.role === 'user' && !item.text.startsWith('[')) return item.text;
  }
  return '';
}
