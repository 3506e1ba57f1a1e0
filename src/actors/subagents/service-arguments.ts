// Validates the arguments of `SubagentService`, because untyped programs and JSON also call it, and its arguments are
// written to the journal.
//
// Invariants
//   SARG-1. The validated value has only the declared properties. All other properties of the caller's object are
//       dropped.

import { z } from 'zod';
import { isRecord } from '../../values/json.ts';
import { check } from '../../values/checks.ts';
import { budgetLimits } from '../admission/budget.ts';
import type { BudgetLimits } from '../contracts/config.ts';
import { identity } from '../contracts/identity.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import type {
  AwaitOptions,
  ListOptions,
  ProgressNote,
  Requester,
  SendRequest,
  SpawnRequest,
} from '../contracts/service-types.ts';

/**
 * Any string is valid, even an empty one, because the service reports an id that belongs to no subagent as unknown.
 */
const id = z.string();
const key = z.string().min(1);
const names = z.array(z.string());
/** Any number is valid, because the service itself refuses numbers that are out of range and gives the reason. */
const anyNumber = z.custom<number>((value) => typeof value === 'number', {
  error: 'expected a number',
});

const aConfig = z.custom((value) => typeof value === 'object' && value !== null, {
  error: 'expected a configuration',
});
const aTask = z.strictObject({
  toolName: z.string(),
  args: z.record(z.string(), z.unknown()),
  description: z.string(),
});
const aCaller = z.object({ subagentId: id.nullable() });

const schemas = {
  id,
  ids: z.array(id),
  reason: z.string().optional(),
  /** Other properties are allowed, because values from `callerOf` have some. */
  requester: z.object({ subagentId: id.nullable() }),
  inputsOf: z.strictObject({
    config: aConfig,
    task: aTask,
    caller: aCaller,
    idempotencyKey: key.optional(),
  }),
  message: z.strictObject({
    content: z.string(),
    inResponseTo: id.optional(),
    mode: z.enum(['queue', 'steer', 'interrupt']).optional(),
    idempotencyKey: key.optional(),
  }),
  limits: budgetLimits.refine(
    (limits) => Object.values(limits).some((limit) => limit !== undefined),
    'expected at least one limit',
  ),
  note: z.strictObject({ update: z.string(), percent: anyNumber.nullable() }),
  await: z.strictObject({
    mode: z.enum(['any', 'all']).optional(),
    alsoAsking: z.boolean().optional(),
    heedsUser: z.boolean().optional(),
    timeoutMs: anyNumber.optional(),
    signal: z.instanceof(AbortSignal).optional(),
  }),
  list: z.strictObject({ includeEnded: z.boolean().optional() }),
  spawn: z.strictObject({
    config: aConfig,
    task: aTask,
    caller: aCaller,
    callId: z.string().optional(),
    grant: z
      .strictObject({ tools: names.optional(), disallowedTools: names.optional() })
      .optional(),
    workstreamId: z.string().optional(),
    maxDepth: anyNumber.optional(),
    idempotencyKey: key.optional(),
    messages: z.array(z.unknown()).optional(),
    recipe: z.unknown().optional(),
    adapterName: z.string().optional(),
    modelName: z.string().optional(),
    by: identity.optional(),
    traceparent: z.string().optional(),
  }),
} as const;

/** The types of the validated arguments. */
interface Checked {
  readonly id: string;
  readonly ids: readonly string[];
  readonly reason: string | undefined;
  readonly requester: Requester;
  readonly message: SendRequest;
  readonly limits: BudgetLimits;
  readonly note: Pick<ProgressNote, 'update' | 'percent'>;
  readonly await: AwaitOptions;
  readonly list: ListOptions;
  readonly spawn: SpawnRequest;
  readonly inputsOf: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>;
}

/**
 * Validates one argument of a method. `where` names the method and the argument, as in `send(id, message)`.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`
 */
export function argument<Name extends keyof Checked>(
  name: Name,
  where: string,
  value: unknown,
): Checked[Name] {
  const checked: unknown = check(where, schemas[name], value, 'INVALID_ARGUMENT');
  return (isRecord(checked) ? withoutUndefined(checked) : checked) as Checked[Name];
}
