// Understands the names of periods that people use: "last week", "the fourth quarter", "past 10 days", "March 2026".
// Days are in UTC, and both ends are included.

/** A period of whole days. */
export interface DateRange {
  /** The period as people say it: `the last 7 days`, `the fourth quarter of 2026`. */
  readonly label: string;
  /** `YYYY-MM-DD`. */
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 86_400_000;

const months = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
] as const;

const numberWords = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
] as const;

const numberPattern = `\\d{1,3}|${numberWords.slice(1).join('|')}`;
const ordinals = ['first', 'second', 'third', 'fourth'] as const;

const monthPattern = months.join('|');
// "May" alone is more often a verb than a month.
const barePattern = months.filter((month) => month !== 'may').join('|');

/** Each pattern finds the name of a period in a text; `resolve` returns its days. */
const forms: readonly {
  readonly pattern: RegExp;
  readonly resolve: (match: RegExpMatchArray, today: Date) => DateRange;
}[] = [
  {
    pattern: new RegExp(
      `(?:the )?(?:last|past|previous) (${numberPattern}) (day|week|month|year)s?`,
    ),
    resolve: ([, amount = '1', unit = 'day'], today) => {
      const count = Math.max(1, toNumber(amount));
      const from = shifted(today, unit, -count);
      return range(`the last ${count} ${unit}${count === 1 ? '' : 's'}`, addDays(from, 1), today);
    },
  },
  {
    pattern:
      /(?:the )?(?:q([1-4])|([1-4])(?:st|nd|rd|th) quarter|(first|second|third|fourth) quarter)(?: (?:of )?(?:the year )?(\d{4}))?/,
    resolve: ([, short, ordinal, word, year], today) => {
      const quarter =
        Number(short ?? ordinal ?? 0) || ordinals.indexOf(word as (typeof ordinals)[number]) + 1;
      const start = (inYear: number): Date => utc(inYear, (quarter - 1) * 3, 1);
      const thisYear = today.getUTCFullYear();
      const chosen = year
        ? Number(year)
        : start(thisYear).getTime() <= today.getTime()
          ? thisYear
          : thisYear - 1;
      return range(
        `the ${ordinals[quarter - 1]} quarter of ${chosen}`,
        start(chosen),
        addDays(utc(chosen, quarter * 3, 1), -1),
      );
    },
  },
  {
    pattern: /(?:(this|last|previous|current) )(week|month|quarter|year)/,
    resolve: ([, which, unit = 'week'], today) => {
      const thisOne = startOf(unit, today);
      const back = which === 'last' || which === 'previous';
      const from = back ? startOf(unit, addDays(thisOne, -1)) : thisOne;
      const to = back ? addDays(thisOne, -1) : today;
      return range(`${back ? 'last' : 'this'} ${unit}`, from, to);
    },
  },
  {
    pattern: /today|yesterday/,
    resolve: ([word = 'today'], today) => {
      const day = word === 'today' ? today : addDays(today, -1);
      return range(word, day, day);
    },
  },
  {
    pattern: new RegExp(
      `(${monthPattern}) (?:of )?(\\d{4})|\\b(?:in |for )(may)\\b|(${barePattern})`,
    ),
    resolve: ([, name, year, may, bare], today) => {
      const month = months.indexOf((name ?? may ?? bare) as (typeof months)[number]);
      const thisYear = today.getUTCFullYear();
      const past = utc(thisYear, month, 1).getTime() <= today.getTime();
      const chosen = year ? Number(year) : past ? thisYear : thisYear - 1;
      const label = `${capital(months[month] ?? '')} ${chosen}`;
      return range(label, utc(chosen, month, 1), addDays(utc(chosen, month + 1, 1), -1));
    },
  },
  {
    pattern: /\b(20\d{2})\b/,
    resolve: ([, year]) => range(String(year), utc(Number(year), 0, 1), utc(Number(year), 11, 31)),
  },
];

/** The part of `text` that names a period, or null. */
export function findDateRange(text: string): string | null {
  const words = plain(text);
  for (const { pattern } of forms) {
    const found = words.match(pattern)?.[0];
    if (found) return found.replace(/^(?:in|for) /, '');
  }
  return null;
}

/**
 * The days that `text` means at the time `nowMs`; null if it does not name a period. A period never ends in the future.
 */
export function parseDateRange(text: string, nowMs: number): DateRange | null {
  const words = plain(text);
  const today = utcDay(new Date(nowMs));
  for (const { pattern, resolve } of forms) {
    const match = (words === 'may' ? 'for may' : words).match(pattern);
    if (!match) continue;
    const found = resolve(match, today);
    const now = isoDay(today);
    return found.to > now ? { ...found, to: now } : found;
  }
  return null;
}

/** The period of the same length that ends just before this one. */
export function periodBefore({ from, to }: Pick<DateRange, 'from' | 'to'>): {
  readonly from: string;
  readonly to: string;
} {
  const days = daysBetween(from, to);
  const start = new Date(from);
  return { from: isoDay(addDays(start, -days)), to: isoDay(addDays(start, -1)) };
}

/** The days from `from` to `to`, both included. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
}

/** The day that is `days` after `day`. */
export function dayAfter(day: string, days: number): string {
  return isoDay(addDays(new Date(day), days));
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9 ]+/g, ' ')
    .replace(/\bweak\b/g, 'week')
    .replace(/\b(forth|force|fort) quarter\b/g, 'fourth quarter')
    .replace(/\bquart(?:er|ers|a)\b|\bquater\b/g, 'quarter')
    .replace(/\bqueue (\d|one|two|three|four)\b/g, (_, n: string) => `q${toNumber(n)}`)
    .replace(/\bq (\d)\b/g, 'q$1')
    .replace(/\s+/g, ' ')
    .trim();
}

function toNumber(word: string): number {
  const index = numberWords.indexOf(word as (typeof numberWords)[number]);
  return index >= 0 ? index : Number(word);
}

function range(label: string, from: Date, to: Date): DateRange {
  return { label, from: isoDay(from), to: isoDay(to) };
}

function startOf(unit: string, day: Date): Date {
  const [year, month] = [day.getUTCFullYear(), day.getUTCMonth()];
  if (unit === 'year') return utc(year, 0, 1);
  if (unit === 'quarter') return utc(year, month - (month % 3), 1);
  if (unit === 'month') return utc(year, month, 1);
  // Weeks start on Monday.
  return addDays(day, -((day.getUTCDay() + 6) % 7));
}

function shifted(day: Date, unit: string, count: number): Date {
  if (unit === 'day') return addDays(day, count);
  if (unit === 'week') return addDays(day, count * 7);
  const monthsBack = unit === 'year' ? count * 12 : count;
  return utc(day.getUTCFullYear(), day.getUTCMonth() + monthsBack, day.getUTCDate());
}

function utc(year: number, month: number, day: number): Date {
  return new Date(Date.UTC(year, month, day));
}

function utcDay(date: Date): Date {
  return utc(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
}

function addDays(day: Date, days: number): Date {
  return new Date(day.getTime() + days * DAY_MS);
}

function isoDay(day: Date): string {
  return day.toISOString().slice(0, 10);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
