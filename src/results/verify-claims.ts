// Compares the actions that a subagent claims with the calls that the runtime saw.
//
// Owns:     which claims of the report have a call in the ledger that fits.
// Does not: understand the report: a judge model may, and can add objections (judge-claims).
//
// Invariants
//   VERIFY-CLAIMS-2. A claim is unverified only if no successful call can have done it: a tool whose effects
//       are neither declared nor clear from its name counts as one that can.
//   VERIFY-CLAIMS-3. A call that failed, was denied or was not run has done nothing.

import { ownValue } from '../values/own-value.ts';
import type {
  LedgerEntry,
  Outcome,
  UnverifiedClaim,
  ClaimVerification,
} from '../actors/contracts/outcome.ts';
import { declaredEffect, effectVerb, toolNature } from './effect-words.ts';
import { findClaims, type Claim } from './find-claims.ts';
import { isUnfinished } from './unfinished.ts';
/** The side effects of tools, by name: `{ send_mail: ['email.sent'], look_up: [] }`. Absent: not declared. */
export type DeclaredEffects = Readonly<Record<string, readonly string[] | undefined>>;

/** The runtime's own tools have no outside effects. */
const OWN: DeclaredEffects = {
  ask_user: [],
  complete_task: [],
  report_progress: [],
  request_input: [],
};

/**
 * Checks the claims of side effects in a report against the tool ledger. Deterministic, English,
 * and conservative: a report that describes data claims nothing.
 */
export function verifyClaims(
  { text, toolLedger }: Pick<Outcome, 'text' | 'toolLedger'>,
  declared: DeclaredEffects = {},
): ClaimVerification {
  const effects = { ...OWN, ...declared };
  const hasLooked = toolLedger.some(succeeded);
  // "Your flight has been booked" may be the finding of a tool.
  const claims = findClaims(text).filter((claim) => !claim.passive || !hasLooked);
  const unverified = claims.flatMap((claim): UnverifiedClaim[] => {
    const fitting = toolLedger.filter((entry) => canHaveDone(entry, claim, effects));
    if (fitting.some(succeeded)) return [];
    const failed = fitting.at(-1);
    const base = { claim: claim.text };
    return [
      failed
        ? { ...base, reason: 'failed', toolName: failed.toolName }
        : { ...base, reason: 'no_call' },
    ];
  });
  const incomplete = isUnfinished(text);
  return {
    verified: unverified.length === 0 && !incomplete,
    claims: claims.map((claim) => claim.text),
    unverified,
    incomplete,
  };
}

/** Returns the declared effects of AI SDK tools: `effects` beside their definition. */
export function effectsOf(tools: Readonly<Record<string, unknown>>): DeclaredEffects {
  const declared = Object.entries(tools).flatMap(([name, held]) => {
    const effects = typeof held === 'object' && held !== null && 'effects' in held && held.effects;
    return Array.isArray(effects) ? [[name, effects.map(String)] as const] : [];
  });
  return Object.fromEntries(declared);
}

function canHaveDone({ toolName }: LedgerEntry, claim: Claim, effects: DeclaredEffects): boolean {
  const { verb, words } = claim;
  const declared = ownValue(effects, toolName);
  if (declared)
    return declared.some((effect) => {
      const { word, noun } = declaredEffect(effect);
      const kinds = effectVerb(word)?.kinds;
      // A verb that only the author uses: its noun decides.
      return kinds ? kinds.some((kind) => verb.kinds.includes(kind)) : words.includes(noun);
    });
  const nature = toolNature(toolName);
  if (nature.reads) return false;
  return (
    nature.unclear ||
    verb.kinds.some((kind) => nature.kinds.has(kind)) ||
    // A call of `create_invoice` may well have sent it.
    nature.words.some((word) => word.length > 3 && words.includes(word))
  );
}

const REFUSING = ['ok', 'success', 'saved', 'sent', 'deleted', 'created', 'booked', 'completed'];
const failedText = /^\s*(?:error\b|failed\b|(?:http\S*\s+)?[45]\d\d\b)/i;

/** Tells whether the call ran and its output reports no failure. */
function succeeded({ status, output }: LedgerEntry): boolean {
  if (status !== 'ok') return false;
  if (typeof output === 'string') return !failedText.test(output);
  if (typeof output !== 'object' || output === null) return output !== false;
  const told = output as Readonly<Record<string, unknown>>;
  if (told['isError'] === true || Boolean(told['error'])) return false;
  if (typeof told['status'] === 'string' && /^(?:error|fail|rejected|denied)/i.test(told['status']))
    return false;
  return !REFUSING.some((name) => told[name] === false);
}
