// A case of the suite, and the helpers that all cases use.

import type {
  Journal,
  JournalEntry,
  JournalQuery,
  ScopeSummary,
} from '../../actors/ports/journal.ts';
import { messageOf } from '../../values/errors.ts';
import { ConformanceError } from '../conformance/conformance-error.ts';
import { sameJson } from './same-json.ts';
import type { JournalFeature, JournalStage } from './stage.ts';

export interface JournalScene {
  readonly name: string;
  readonly needs: readonly JournalFeature[];
  readonly play: (bench: JournalBench) => Promise<void>;
}

/** Returns a case for each of these plays. All of them need these journal features. */
export function scenesOf(
  needs: readonly JournalFeature[],
  plays: Readonly<Record<string, JournalScene['play']>>,
): readonly JournalScene[] {
  return Object.entries(plays).map(([name, play]) => ({ name, needs, play }));
}

/** The stage of a case, with the operations that every case uses. */
export interface JournalBench {
  readonly journal: Journal;
  readonly stage: JournalStage;
  /** Opens another process. From now on, every process claims a scope before it writes to it. */
  another(): Promise<Journal>;
  reopen(): Promise<Journal>;
}

interface Numbered {
  readonly scope?: string;
  readonly unit?: string;
  readonly text?: string;
}

const BEGINNING = 1_700_000_000_000;

/** Creates an entry with this number. The same arguments produce the same entry. */
export function entry(
  seq: number,
  { scope = 'scope', unit = 'unit', text = `words ${seq}` }: Numbered = {},
): JournalEntry {
  return withEvent({ type: 'user.said', text }, { seq, scope, unit });
}

export function withEvent(
  event: JournalEntry['event'] & Readonly<Record<string, unknown>>,
  where: Partial<JournalEntry> = {},
): JournalEntry {
  const { scope = 'scope', unit = 'unit', seq = 1, actor = 'user' } = where;
  return { scope, unit, seq, at: BEGINNING + seq, actor, definitionVersion: 3, event };
}

/** Appends the entries one after another. First claims the scopes that the journal does not contain yet. */
export async function appendAll(journal: Journal, entries: readonly JournalEntry[]): Promise<void> {
  await claimAll(journal, entries);
  for (const one of entries) await journal.append(one);
}

/** Starts all appends without waiting for any of them. */
export async function appendAtOnce(
  journal: Journal,
  entries: readonly JournalEntry[],
): Promise<void> {
  await claimAll(journal, entries);
  await Promise.all(entries.map(async (one) => journal.append(one)));
}

export async function claimAll(journal: Journal, entries: readonly JournalEntry[]): Promise<void> {
  for (const scope of new Set(entries.map((one) => one.scope))) await journal.claim?.(scope);
}

/** Checks that a query returns these entries, in this order. */
export async function expectKept(
  journal: Journal,
  expected: readonly JournalEntry[],
  query?: JournalQuery,
): Promise<void> {
  const asked = query ? `read(${JSON.stringify(query)})` : 'read()';
  expectSame(await journal.read(query), expected, asked);
}

export function expectSame(
  found: readonly JournalEntry[],
  expected: readonly JournalEntry[],
  asked: string,
): void {
  const names = (): string => found.map(nameOf).join(', ');
  check(
    found.length === expected.length,
    () =>
      `expected ${asked} to find ${expected.length} entries, it found ${found.length}: ${names()}`,
  );
  for (const [at, one] of expected.entries())
    check(
      sameJson(found[at], one),
      () =>
        `expected ${asked} to find ${JSON.stringify(one)} as number ${at + 1}, it found ${JSON.stringify(found[at])}`,
    );
}

/** Checks the order within each scope. Entries in different scopes have no order. */
export function expectSameInEachScope(
  found: readonly JournalEntry[],
  expected: readonly JournalEntry[],
  asked: string,
): void {
  check(
    found.length === expected.length,
    () => `expected ${asked} to find ${expected.length} entries, it found ${found.length}`,
  );
  for (const scope of new Set(expected.map((one) => one.scope))) {
    const of = (entries: readonly JournalEntry[]) => entries.filter((one) => one.scope === scope);
    expectSame(of(found), of(expected), `${asked}, in ${scope},`);
  }
}

export async function expectScopes(
  journal: Journal,
  expected: readonly ScopeSummary[],
): Promise<void> {
  const scopes = await journal.scopes?.();
  check(
    sameJson(scopes, expected),
    () => `expected scopes() to be ${JSON.stringify(expected)}, it is ${JSON.stringify(scopes)}`,
  );
}

/** Checks that a call is refused with this code, and that the error states whether a retry can succeed. */
export async function expectRefused(
  what: string,
  work: () => unknown,
  { code, isForGood }: { readonly code: string; readonly isForGood?: boolean },
): Promise<void> {
  let refusal: unknown;
  try {
    await work();
  } catch (error) {
    refusal = error;
  }
  check(refusal !== undefined, () => `expected ${what} to be refused with ${code}, it was not`);
  const error = refusal as { readonly code?: unknown; readonly retryable?: unknown };
  check(
    error.code === code,
    () => `expected ${what} to be refused with ${code}: ${messageOf(refusal)}`,
  );
  check(refusal instanceof Error, () => `expected what refuses ${what} to be an error`);
  if (isForGood === true)
    check(error.retryable === false, () => `expected ${code} to say \`retryable: false\``);
}

/** @throws {ConformanceError} with the text `says` unless the condition is true */
export function check(isSo: boolean, says: () => string): asserts isSo {
  if (!isSo) throw new ConformanceError(says());
}

function nameOf({ scope, unit, seq }: JournalEntry): string {
  return `${scope}/${unit}/${seq}`;
}
