// Speaks as a person does: if the speaker is misheard, they wait for the answer and say it again. A real recogniser
// listens and sometimes makes errors.
//
// Owns: the text said to the session, and the number of attempts. Does not: forgive faults of the session. Every
// utterance must be transcribed, and a correctly transcribed one must take effect; otherwise the test fails at the
// first attempt.

import type { SessionState, TranscriptItem } from '../../../src/index.ts';
import type { SessionWatch } from './session-watch.ts';
import type { Tab } from './tab.ts';

interface Saying {
  readonly text: string;
  /**
   * The words that the recogniser must get right for the utterance to be understood. Case and punctuation do not
   * matter.
   */
  readonly matters: readonly string[];
}

const MAX_TRIES = 4;

/**
 * Says the text, says it again if it was misheard, and resolves with the first value that `find` finds in the session.
 * The text may depend on what the session has understood so far.
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
      // The session may have understood the text despite the error.
      if (find(state)) return 'understood';
      return isAnswered(state, lines) && 'misheard';
    });
    const said = `"${text}" was taken down as "${wordsOf(heard(watch.state))}"`;
    if (becomes === 'understood') return watch.until(`${what}, after ${said}`, find);
    misheard.push(said);
  }
  throw new Error(`Misheard too often until ${what}: ${misheard.join('; ')}. ${watch.describe()}`);
}

/** Returns whether the lead agent has replied to the last of these lines and is silent. */
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

/** The words between spaces, so that `includes` matches whole words only. */
function plain(text: string): string {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return ` ${words.join(' ')} `;
}
