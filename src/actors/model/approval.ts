// Who consents to a tool call: nobody needs to, the author did beforehand, the user shall be
// asked, or the user has said no already. Decided before the call is run, for this call alone.
//
// Owns:     the order of these reasons.
// Does not: ask the user (session), or hold what the user said (the subagent does).
//
// Invariants
//   APPROVAL-1. Only the runtime mints an approval: from the user's answer, or from what the author
//       of the configuration wrote. Nothing that a model or a tool says is one.
//   APPROVAL-2. An approval is of one call: this tool with exactly these arguments, once.
//   APPROVAL-3. What was denied to a subagent is denied to all below it, at once and without asking;
//       no pre-approval and no milder tool of the same name goes round it.
//   APPROVAL-4. With doubt it is asked: a condition that throws approves nothing.

import { asJson } from '../../values/json.ts';
import { handleRejection } from '../../values/errors.ts';
import type { PreApproval } from '../contracts/config.ts';
/** What is to be done with a call. */
export type Consent = 'not_needed' | 'ask' | 'pre_authorised' | 'inherited_denial';

interface Asked {
  readonly toolName: string;
  readonly input: unknown;
  readonly preApproved: readonly PreApproval[];
  /** Does the tool want consent for these arguments? */
  needed(): boolean | Promise<boolean>;
  /** Did the user deny the same call to a subagent above? */
  deniedAbove(): boolean;
  report(error: unknown, where: string): void;
}

/** What consent a call has, or needs. */
export async function consentFor(asked: Asked): Promise<Consent> {
  if (asked.deniedAbove()) return 'inherited_denial';
  if (!(await asked.needed())) return 'not_needed';
  return isPreApproved(asked) ? 'pre_authorised' : 'ask';
}

function isPreApproved({ toolName, input, preApproved, report }: Asked): boolean {
  return preApproved.some(({ tool, when }) => {
    if (tool !== toolName) return false;
    if (!when) return true;
    try {
      // Anything but `true` is no: a promise, above all.
      const said: unknown = when(input);
      handleRejection(said, (error) => report(error, `preApproved of ${toolName}`));
      return said === true;
    } catch (error) {
      report(error, `preApproved of ${toolName}`);
      return false;
    }
  });
}

/** Names a call by its tool and arguments: the same arguments in any order of keys are the same call. */
export function callKey(toolName: string, input: unknown): string {
  const json = asJson(input ?? {});
  return `${toolName} ${json.ok ? JSON.stringify(json.value, sorted) : String(input)}`;
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What the model reads of a call that the user denied to a subagent above. */
export const INHERITED_DENIAL =
  'The user has already denied exactly this call. Do not try it again; say so, or find another way.';
