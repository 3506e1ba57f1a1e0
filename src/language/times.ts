// Times of day in words: "half past nine", "16:00", "4 pm", "acht Uhr vier".
//
// TIMES-1. An hour without minutes is a time only next to a time word ("at nine", "nine o'clock"), or directly after a
//     word that the caller allows ("Tuesday nine"). Any other number is a quantity.
// TIMES-2. "Four" means 16:00 if no option is at 4:00, unless the user named the other half of the day.

import { phraseAt, type Tables, type Words } from './tables.ts';
import { isNumber } from './utterance.ts';

export interface TimeOfDay {
  /** The index of the time's first word, and of the first word after the time. */
  readonly start: number;
  readonly end: number;
  readonly hour: number;
  readonly minute: number;
  readonly half: 'am' | 'pm' | null;
}

/** Finds the times. `leads`: returns whether this word turns a bare hour after it into a time. */
export function timesIn(
  words: Words,
  tables: Tables,
  leads: (word: string) => boolean = () => false,
): readonly TimeOfDay[] {
  const found: TimeOfDay[] = [];
  for (let start = 0; start < words.length;) {
    const time = timeAt(words, start, tables, leads);
    if (time) found.push(time);
    start = time ? time.end : start + 1;
  }
  return found;
}

/** Returns whether the spoken time is the option's time; `exactly` compares on the 24-hour clock. */
export function isTime(said: TimeOfDay, of: TimeOfDay, exactly: boolean): boolean {
  if (said.minute !== of.minute) return false;
  if (exactly && said.half === of.half) return said.hour === of.hour;
  const isOther = said.half !== null && of.half !== null && said.half !== of.half;
  return !exactly && !isOther && said.hour % 12 === of.hour % 12;
}

function timeAt(
  words: Words,
  start: number,
  { clock }: Tables,
  leads: (word: string) => boolean,
): TimeOfDay | null {
  const beside = (index: number, list: keyof typeof clock): number =>
    phraseAt(words, index, clock[list]);
  const numberAt = (index: number): number | null =>
    isNumber(words[index]) && Number.isInteger(Number(words[index])) ? Number(words[index]) : null;
  const hourAt = (index: number): number | null => {
    const number = numberAt(index);
    return number !== null && number <= 24 ? number : null;
  };
  const at = (index: number, hours: number, past: number): TimeOfDay => {
    let end = index + beside(index, 'marks');
    const [am, pm] = [beside(end, 'am'), beside(end, 'pm')];
    end += Math.max(am, pm);
    const half = pm > 0 || hours > 12 ? 'pm' : am > 0 || hours === 0 ? 'am' : null;
    return { start, end, hour: (hours + 24) % 24, minute: past, half };
  };
  // "Half past nine", "halb zehn", "quarter to ten", "twenty past eight".
  for (const [list, by] of [
    ['halfPast', 30],
    ['halfTo', -30],
  ] as const) {
    const length = beside(start, list);
    const of = hourAt(start + length);
    if (length > 0 && of !== null) return relative(start + length + 1, of, by);
  }
  const quarter = beside(start, 'quarters');
  const minutes = quarter > 0 ? 15 : numberAt(start);
  const counted = start + (quarter || 1);
  if (minutes !== null && minutes < 60) {
    const [past, to] = [beside(counted, 'past'), beside(counted, 'to')];
    const of = hourAt(counted + (past || to));
    if (past + to > 0 && of !== null)
      return relative(counted + (past || to) + 1, of, past > 0 ? minutes : -minutes);
  }
  const hour = hourAt(start);
  const previous = words[start - 1] ?? '';
  const isLed = leads(previous) || clock.leads.some(([word]) => word === previous);
  if (hour === null) return isLed ? military(start) : null;
  const marked = start + 1 + beside(start + 1, 'marks');
  const minute = numberAt(marked);
  const isMinute = minute !== null && minute < 60;
  if (isMinute && (marked > start + 1 || words[marked]?.length === 2))
    return at(marked + 1, hour, minute);
  const time = at(start + 1, hour, 0);
  return isLed || time.end > start + 1 ? time : null;

  function relative(end: number, of: number, by: number): TimeOfDay {
    const all = (of * 60 + by + 24 * 60) % (24 * 60);
    const { end: last, half } = at(end, of, 0);
    return { start, end: last, hour: Math.floor(all / 60), minute: all % 60, half };
  }

  /** Reads "Sixteen hundred". */
  function military(index: number): TimeOfDay | null {
    const number = numberAt(index) ?? 0;
    const [hours, past] = [Math.floor(number / 100), number % 100];
    return number >= 100 && hours <= 24 && past < 60 ? at(index + 1, hours, past) : null;
  }
}
