// Completes an outcome before it is read: checks its claims, stores parts that are too large in working
// memory and refers to them, and records an end that was no success.
//
// Owns:     the order of these steps, and the time that they may take.
// Does not: decide whether the run succeeded (its machine did).
//
// Invariants
//   SETTLE-OUTCOME-1. The result is always an outcome with the same status; a step that fails is reported,
//       and its part is missing.
//   SETTLE-OUTCOME-2. Without a judge, and with nothing to store, it returns synchronously.
//   SETTLE-OUTCOME-3. Each part of an outcome that a model will read is at most `maxInlineBytes`.

import type { JSONValue } from 'ai';
import { asJson, isLongerThan } from '../values/json.ts';
import { judgeClaims, type ClaimJudge } from './judge-claims.ts';
import { effectsOf, verifyClaims } from './verify-claims.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import { inTime, raceAbort } from '../actors/runtime/race-abort.ts';
import type { Outcome, ClaimVerification } from '../actors/contracts/outcome.ts';
import { namespaceOf } from '../memory/keys.ts';
import { largeOutput, type LargeOutputOptions } from '../memory/large-output.ts';
import { memoryTime } from '../memory/memory-time.ts';
import { speakable } from '../memory/speakable.ts';
import { failureDetails, type RunFacts } from './failure-details.ts';

/** The facts about one run that has ended. */
export interface EndedRun extends RunFacts {
  /** Its place in working memory. */
  readonly owner: MemoryOwner;
  /** Its tools as their author wrote them: they may declare `effects`. */
  readonly tools: Readonly<Record<string, unknown>>;
  /** The name of the tool with which the reader of its result reads working memory, if it has one. */
  readonly readWith: string | null;
}

export interface OutcomeSettings {
  readonly memory?: WorkingMemory | undefined;
  /** The size above which a part goes to working memory. */
  readonly maxInlineBytes: number;
  readonly judge?: ClaimJudge | undefined;
  readonly environment: Pick<Environment, 'scheduler'>;
  readonly report: (error: unknown, where: string) => void;
}

/** The key, in a subagent's namespace, under which the runtime stores its result. */
const RESULT_KEY = 'final-result';
const PARTIAL_KEY = 'partial-result';
const FAILURE_KEY = 'failure-details';

const MAX_NOTES = 20;

/** Returns the outcome synchronously, or a promise that never rejects. */
export function settleOutcome(
  raw: Outcome,
  run: EndedRun,
  settings: OutcomeSettings,
): Outcome | Promise<Outcome> {
  const outcome: Outcome = raw.status === 'completed' ? verified(raw, run) : explained(raw, run);
  const { memory, judge } = settings;
  const hasToWait =
    memory !== undefined || isLarge(outcome, settings) || (judge && raw.status === 'completed');
  return hasToWait ? settle(outcome, run, settings) : outcome;
}

async function settle(
  outcome: Outcome,
  run: EndedRun,
  settings: OutcomeSettings,
): Promise<Outcome> {
  const { environment, memory, report } = settings;
  const judged = await withJudge(outcome, settings);
  const { owner, readWith } = run;
  const { maxInlineBytes } = settings;
  return inTime(async (signal) => {
    const keeping = { memory, owner, readWith, maxInlineBytes, report, signal };
    const bounded =
      judged.status === 'completed'
        ? await withBoundedResult(judged, keeping)
        : await withBoundedPartial(await withKeptDetails(judged, keeping), keeping);
    return withNotes(bounded, keeping);
  }, memoryTime(environment));
}

function verified(outcome: Outcome, { tools }: EndedRun): Outcome {
  return withVerification(outcome, verifyClaims(outcome, effectsOf(tools)));
}

/** Adds the verification; an outcome without claims stays unchanged. */
function withVerification(outcome: Outcome, verification: ClaimVerification): Outcome {
  const { claims, incomplete } = verification;
  return claims.length === 0 && !incomplete ? outcome : { ...outcome, verification };
}

function explained(outcome: Outcome, run: EndedRun): Outcome {
  return { ...outcome, diagnostics: { ...failureDetails(outcome, run), reference: null } };
}

async function withJudge(
  outcome: Outcome,
  { judge, environment, report }: OutcomeSettings,
): Promise<Outcome> {
  if (!judge || outcome.status !== 'completed') return outcome;
  const { text, toolLedger } = outcome;
  const known = outcome.verification ?? verifyClaims({ text, toolLedger });
  const verification = await judgeClaims(outcome, known, { judge, environment, report });
  return withVerification(outcome, verification);
}

type Keeping = Omit<LargeOutputOptions, 'key'> & { readonly signal: AbortSignal };

function isLarge({ output, text, partial = '' }: Outcome, { maxInlineBytes }: OutcomeSettings) {
  const json = asJson(output);
  const all = [text, partial, json.ok ? json.text : ''];
  return all.some((part) => isLongerThan(part, maxInlineBytes));
}

async function withBoundedResult(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const isTooLong = (words: string): boolean => isLongerThan(words, keeping.maxInlineBytes);
  const { text } = outcome;
  const json = asJson(outcome.output);
  const output: JSONValue = json.ok ? json.value : text;
  const whole = typeof output === 'string' ? output : JSON.stringify(output);
  const [isOutputLarge, isTextLarge] = [isTooLong(whole), isTooLong(text)];
  const given = outcome.summary;
  const own = given !== undefined && isTooLong(given) ? speakable(given) : given;
  if (!isOutputLarge && !isTextLarge) return own === given ? outcome : { ...outcome, summary: own };
  // The text of structured output is the same, or its summary; the larger of the two is stored.
  const large = isOutputLarge
    ? await largeOutput(output, whole, { ...keeping, key: RESULT_KEY })
    : await largeOutput(text, text, { ...keeping, key: RESULT_KEY });
  const summary = own ?? speakable(isOutputLarge ? output : text);
  return {
    ...outcome,
    output: isOutputLarge ? large : outcome.output,
    text: isTextLarge ? shortened(summary, large) : text,
    summary,
  };
}

function shortened(
  summary: string,
  { originalBytes, reference }: { originalBytes: number; reference: string | null },
): string {
  const where = reference === null ? 'it is not kept' : `it is under ${reference}`;
  return `${summary}\n(This is a summary. The whole has ${originalBytes} bytes; ${where}.)`;
}

async function withBoundedPartial(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { partial } = outcome;
  if (partial === undefined || !isLongerThan(partial, keeping.maxInlineBytes)) return outcome;
  const large = await largeOutput(partial, partial, { ...keeping, key: PARTIAL_KEY });
  return { ...outcome, partial: shortened(speakable(partial), large) };
}

async function withKeptDetails(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { diagnostics } = outcome;
  const { memory, owner, report, signal } = keeping;
  if (!memory || !diagnostics) return outcome;
  try {
    const { reference: _, ...value } = diagnostics;
    const entry = { key: FAILURE_KEY, value, category: 'failure' };
    const answer = await raceAbort(memory.save(owner, entry), signal);
    if (answer.ok) return { ...outcome, diagnostics: { ...diagnostics, reference: answer.key } };
    report?.(new Error(answer.error.message), `failure details of ${namespaceOf(owner)}`);
  } catch (error) {
    report?.(error, `failure details of ${namespaceOf(owner)}`);
  }
  return outcome;
}

/** Adds the keys that the subagent left, for agents that continue its work. */
async function withNotes(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { memory, owner, report, signal } = keeping;
  if (!memory) return outcome;
  try {
    const filter = { prefix: namespaceOf(owner), limit: MAX_NOTES };
    const answer = await raceAbort(memory.list(owner, filter), signal);
    if (!answer.ok || answer.entries.length === 0) return outcome;
    return { ...outcome, notes: answer.entries.map(({ key }) => key) };
  } catch (error) {
    report?.(error, 'working memory');
    return outcome;
  }
}
