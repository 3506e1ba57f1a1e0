// A yes or a no to something that will really happen.
//
// Invariants
//   A1. Approved is only an utterance that consists of the closed list `yes` and nothing
//       else (politeness and lead-ins apart). Nothing like it is enough: recognition turns
//       "go ahead" into "no head".
//   A2. Any negation wins: beside a `no` of its list a yes does not count.
//   A3. "Wait" and a question are neither. With doubt it is unclear: ask again.

import { digression, hold, unclear, type Match } from './match.ts';
import { isHold, startsDigression, startsQuestion, wantsRepeat } from './side-talk.ts';
import { standsAt, type Tables } from './tables.ts';
import type { Utterance } from './utterance.ts';

export function matchApproval(utterance: Utterance, tables: Tables): Match {
  const verdict = verdictOf(utterance, tables);
  if (verdict) return utterance.asks ? unclear : { kind: verdict };
  if (utterance.words.length === 0 || wantsRepeat(utterance, tables)) return unclear;
  if (isHold(utterance, tables, 'anywhere')) return hold;
  const isAside =
    utterance.asks || startsDigression(utterance, tables) || startsQuestion(utterance, tables);
  return isAside ? digression : unclear;
}

/** Reads the utterance as a row of listed phrases; null if a word is left over, or nothing was said. */
function verdictOf({ words }: Utterance, { phrases }: Tables): 'approved' | 'denied' | null {
  const lists = [
    { entries: phrases.no, says: 'no' },
    { entries: phrases.yes, says: 'yes' },
    { entries: phrases.polite, says: 'nothing' },
    { entries: phrases.leadIns, says: 'nothing' },
  ] as const;
  // For each number of words read so far: what can have been said ("please do not" can be
  // read in two ways; only one of them comes to the end).
  const readings: Set<'no' | 'yes' | 'nothing'>[] = words.map(() => new Set());
  readings.push(new Set());
  readings[0]?.add('nothing');
  for (let start = 0; start < words.length; start += 1) {
    for (const said of readings[start] ?? []) {
      for (const { entries, says } of lists) {
        for (const entry of entries) {
          if (!standsAt(words, start, entry)) continue;
          const together = said === 'no' || says === 'no' ? 'no' : says === 'yes' ? 'yes' : said;
          readings[start + entry.length]?.add(together);
        }
      }
    }
  }
  const whole = readings[words.length];
  if (whole?.has('no')) return 'denied';
  return whole?.has('yes') ? 'approved' : null;
}
