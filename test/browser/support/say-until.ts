// Speaks as a person does: who was misheard waits for the answer, and says it again. The ears
// are a real recogniser, which now and then slips.
//
// Owns:     what is said to the session, and how often.
// Does not: forgive the session anything: what was said must be taken down, and what was taken
//           down right must be acted upon. Both fail at the first try.

import type { SessionState, TranscriptItem } from '../../../src/index.ts';
import type { SessionWatch } from './session-watch.ts';
import type { Tab } from './tab.ts';

interface Saying {
  readonly text: string;
  /** The words of it that matter: whoever took these down has understood. Case and punctuation do not count. */
  readonly matters: readonly string[];
}

const MAX_TRIES = 4;

/**
 * Says it, and again if it was misheard; resolves with the first thing that `find` finds in the
 * session. What is said may depend on what was understood so far.
 */
export async function sayUntil<T>(
  { watch }: { readonly watch: SessionWatch },
  tab: Tab,
  what: string,
  saying: Saying | (() => Saying),
  find: (state: SessionState) => T | null | undefined | false,
): Promise<T> {
  const misheard: string[] = [];
  while (misheard.length < MAX_TRIES) {
    const { text, matters } = typeof saying === 'function' ? saying() : saying;
    const before = new Set(watch.state.transcript.map(({ id }) => id));
    const heard = ({ transcript }: SessionState): readonly TranscriptItem[] =>
      transcript.filter(({ id, role, final }) => role === 'user' && final && !before.has(id));
    await tab.say(text);
    const becomes = await watch.until(`"${text}" is taken down, and answered`, (state) => {
      const lines = heard(state);
      const words = plain(wordsOf(lines));
      if (lines.length === 0) return null;
      if (matters.every((each) => words.includes(plain(each)))) return 'understood';
      // It may have been understood in spite of a slip.
      if (find(state)) return 'understood';
      return isAnswered(state, lines) && 'misheard';
    });
    const said = `"${text}" was taken down as "${wordsOf(heard(watch.state))}"`;
    if (becomes === 'understood') return watch.until(`${what}, after ${said}`, find);
    misheard.push(said);
  }
  throw new Error(`Misheard too often until ${what}: ${misheard.join('; ')}. ${watch.describe()}`);
}

/** The lead agent has replied to the last of these lines, and is silent. */
function isAnswered(
  { transcript, floor }: SessionState,
  lines: readonly TranscriptItem[],
): boolean {
  const last = lines.at(-1);
  return (
    last !== undefined &&
    floor === 'nobody' &&
    transcript.some(
      ({ role, text, at, final, interrupted = false, filler = false }) =>
        role === 'assistant' && text !== '' && at > last.at && final && !interrupted && !filler,
    )
  );
}

function wordsOf(lines: readonly TranscriptItem[]): string {
  return lines.map(({ text }) => text).join(' ');
}

/** Between blanks, so that it includes whole words only. */
function plain(text: string): string {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return ` ${words.join(' ')} `;
}
