// Judges a call by the subagent's model: decides what the machine does with it, and which approval it has or needs.
// After a restart, judges pending calls and questions again with the current code.
//
// Owns:     the decision on what happens to a call, and the comparison of an earlier judgement with the current one.
// Does not: run the call, ask the user, or decide the order of the calls (the machine does).
//
// Invariants
//   CALL-JUDGEMENT-1. If another process judged a call, the call runs only if this process judges it in the same way:
//       its tool exists, the tool's schema produces the same input, the identity that approved it may still do so, and
//       no approval is missing.
//   CALL-JUDGEMENT-2. A question that was waiting before a restart is withdrawn with a reason if its call would not run
//       (CALL-JUDGEMENT-1) or if different identities may answer it now. The model may ask again.

import type { ModelMessage } from 'ai';
import { callKey } from '../../values/json.ts';
import type { StepCall } from '../../machines/index.ts';
import { hashOf } from '../../values/storable.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import { coversCall, mayAnswer } from '../contracts/session-views.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { CallInput } from '../contracts/records.ts';
import {
  approvalNeeded,
  AUTHORS_DENIAL,
  approvalWords,
  authorsDecision,
  consentFor,
  type Consent,
} from '../model/approval.ts';
import { callInput, type ModelCall } from '../model/model-step.ts';
import { toolError, type ToolOutcome } from '../model/tool-results.ts';
import type { PreparedTools, ToolEntry } from '../model/tools.ts';
import type { Host } from '../runtime/host.ts';
import { ASK_USER, mayGiveBack, NOT_FOR_ME } from './ask-user.ts';
import { checkHandIn } from './child-toolset.ts';
import type { StepLoop } from './executor.ts';
import { SLEEP_UNTIL, wakeTime } from './sleep-until.ts';
import type { SubagentHandle, SubagentPorts } from './subagent-ports.ts';
import type { SubagentLog } from './subagent-log.ts';

/** The context in which a call is judged. */
export interface Judging {
  readonly host: Host;
  readonly ports: SubagentPorts;
  readonly worker: SubagentHandle & { readonly log: SubagentLog };
  /** The loop of an AI SDK agent, which provides the contexts for `toolApproval`; null if there is none. */
  readonly loop: StepLoop | null;
  readonly definition: SubagentDefinition;
  /** The tools, or null before the instance exists. */
  readonly tools: PreparedTools | null;
  /** The messages that the model had read before it made the call. */
  readonly messages: readonly ModelMessage[];
  readonly signal: AbortSignal;
  contextOf(toolName: string, callId: string): unknown;
}

type Kind = Omit<StepCall, 'callId'>;
const asTool: Kind = { kind: 'tool' };

/** Returns what the machine does with a call, together with the call's approval and its validated arguments. */
export async function judgedCall(
  judging: Judging,
  call: ModelCall,
): Promise<readonly [Kind, ModelCall]> {
  // An invalid call is answered with its error, and the user is not asked.
  if (call.invalid) return [asTool, call];
  const { definition, host, tools, worker } = judging;
  const { toolName, input } = call;
  const isAsking =
    toolName === ASK_USER || (toolName === NOT_FOR_ME && mayGiveBack(worker.log.ledger));
  if (isAsking) return [{ kind: 'question' }, { ...call, ...whoMay(judging, null) }];
  if (toolName === SLEEP_UNTIL && definition.maxSleepMs > 0) {
    const until = wakeTime(input, host.environment.clock.now(), definition.maxSleepMs);
    if (typeof until === 'number') return [{ kind: 'sleep', until }, call];
    return [asTool, { ...call, invalid: { message: until } }];
  }
  const entry = tools?.execution.get(toolName);
  if (!entry) return [asTool, call];
  if (entry.role === 'request_input') return [{ kind: 'input' }, call];
  if (entry.role === 'complete_task') {
    const checked = await checkHandIn(call, definition.outputSchema);
    return [checked.invalid ? asTool : { kind: 'completion' }, checked];
  }
  const { delegates } = entry;
  const { consent, reason, approvalId } = await consentOf(judging, entry, call);
  const isExplained = reason !== undefined && (consent === 'ask' || consent === 'author_denied');
  const consented =
    consent === 'not_needed'
      ? call
      : { ...call, consent, ...(isExplained && { reason }), ...(approvalId && { approvalId }) };
  const isJob = host.jobs && (entry.runs ?? definition.runs) === 'jobs' && !delegates;
  const judged = isJob && entry.execute ? { ...consented, job: host.jobs.name } : consented;
  if (consent === 'inherited_denial' || consent === 'author_denied') return [asTool, judged];
  if (consent === 'ask') {
    const question = await approvalWords(entry, input, circumstances(judging, call));
    const { about } = entry;
    const words = question === undefined ? about !== null && { about } : { question };
    const form = formOf(entry);
    const { mayDiffer } = entry;
    const asked = {
      ...judged,
      ...words,
      ...whoMay(judging, entry),
      ...(form === null ? {} : { form }),
      ...(mayDiffer === false || mayDiffer.length > 0 ? { mayDiffer } : {}),
    };
    return [delegates ? { kind: 'approval', delegates } : { kind: 'approval' }, asked];
  }
  return [delegates ? { kind: 'delegation' } : asTool, judged];
}

/** Arguments that replace those of a call, and the author's question about them. */
export interface ChangedCall {
  readonly changed: CallInput;
  readonly question: string | undefined;
}

/**
 * Returns the call with these arguments, if the user may approve it.
 * @throws {ConfigurationError} `INVALID_INPUT` (rejects).
 */
export async function changedCall(
  judging: Judging,
  call: ModelCall,
  given: unknown,
): Promise<ChangedCall> {
  const { toolName } = call;
  const refused = (why: string) =>
    new ConfigurationError('INVALID_INPUT', `${toolName} with changed arguments: ${why}`);
  const entry = judging.tools?.execution.get(toolName);
  if (!entry) throw refused('a tool of another agent takes only the arguments that it asked for');
  const { input, raw } = call;
  if (raw !== true && !(await yieldsTheSame(entry, { toolName, input })))
    throw refused('its schema converts them, so what the question shows cannot be changed');
  const validated = await entry.validate(given);
  if (!validated.ok) throw refused(validated.message);
  const changed = callInput(toolName, given, validated.value);
  const asked = { ...call, raw: undefined, ...changed };
  const { consent, reason } = await consentOf(judging, entry, asked);
  if (consent === 'author_denied') throw refused(reason ?? AUTHORS_DENIAL);
  if (consent === 'inherited_denial') throw refused('the user has denied exactly this call');
  const question = await approvalWords(entry, changed.input, circumstances(judging, asked));
  return { changed, question };
}

/**
 * Returns the approval that the call has or needs, the author's reason, and the question to which the user gave a
 * lasting approval.
 */
async function consentOf(
  judging: Judging,
  entry: ToolEntry,
  call: ModelCall,
): Promise<{
  readonly consent: Consent;
  readonly reason: string | undefined;
  readonly approvalId?: string;
}> {
  const { definition, host, loop, ports, worker } = judging;
  const { toolName, input } = call;
  const { runtimeContext = {} } = loop ?? {};
  const { toolApproval, tools } = definition;
  const toolsContext = loop?.toolsContext(definition.toolsContext) ?? definition.toolsContext ?? {};
  const report = (error: unknown, where: string): void => host.report(error, where);
  let reason: string | undefined;
  const decided = async () => {
    const asked = circumstances(judging, call);
    const contexts = { tools, toolsContext, runtimeContext };
    const decision = await authorsDecision(toolApproval, entry, input, asked, contexts);
    reason = decision?.reason;
    return decision?.needed ?? approvalNeeded(entry, input, asked);
  };
  const consent = await consentFor({
    toolName,
    input,
    preApproved: definition.preApproved,
    deniedAbove: () => ports.standingOf(worker).isDenied(toolName, input),
    needed: () => (toolApproval || entry.needsApproval !== false ? decided() : false),
    report,
  });
  if (consent !== 'ask') return { consent, reason };
  // APPROVAL-6
  const answerableBy = answerersOf(judging, entry);
  const lasting = ports
    .standingOf(worker)
    .lasting.find(
      (one) => coversCall(one, call, entry.mayDiffer) && mayAnswer({ answerableBy }, one.answer.by),
    );
  return lasting
    ? { consent: 'lasting', reason, approvalId: lasting.requestId }
    : { consent, reason };
}

function circumstances(
  { contextOf, host, messages, signal }: Judging,
  { callId, raw, toolName }: ModelCall,
) {
  const report = (error: unknown, where: string): void => host.report(error, where);
  return { callId, messages, raw, context: contextOf(toolName, callId), signal, report };
}

/**
 * Returns the identities that may answer, as set by the tool or, if it sets none, by the nearest configuration that
 * does.
 */
function answerersOf({ ports, worker }: Judging, entry: ToolEntry | null) {
  return entry?.answerableBy ?? ports.standingOf(worker).answerableBy;
}

function whoMay(judging: Judging, entry: ToolEntry | null) {
  const answerableBy = answerersOf(judging, entry);
  return answerableBy ? { answerableBy } : {};
}

/** Returns a digest of the input schema that a model reads; null while the schema is unknown. */
function formOf({ jsonSchema }: ToolEntry): string | null {
  const json = jsonSchema();
  return json && hashOf(JSON.stringify(json));
}

/**
 * Returns the difference between the current code's judgement of a call and the earlier one; null if they are the same
 * (CALL-JUDGEMENT-1).
 */
export async function changeSince(judging: Judging, call: ModelCall): Promise<string | null> {
  const { consent, invalid, toolName } = call;
  if (invalid || consent === 'inherited_denial' || consent === 'author_denied') return null;
  const { definition, tools, worker } = judging;
  const entry = tools?.execution.get(toolName) ?? null;
  const approval = worker.log.approvalOf(call.callId);
  if (approval && !mayAnswer({ answerableBy: answerersOf(judging, entry) }, approval.by))
    return 'who may approve it has changed, so it has to be asked for again';
  // A relay's tools belong to the relayed agent, which asks again on its own.
  if (!tools || definition.relay) return null;
  if (!entry) return `there is no tool "${toolName}" any more`;
  const form = formOf(entry);
  if (call.form !== undefined && form !== null && call.form !== form)
    return 'the input of the tool has another form now, so it has to be asked for again';
  if (!(await yieldsTheSame(entry, call)))
    return 'the tool no longer takes this input as it was, so it has to be asked for again';
  const { consent: now } = await consentOf(judging, entry, call);
  if (now === 'inherited_denial' || now === 'author_denied') return 'it is no longer permitted';
  return now === 'ask' && consent !== 'ask' ? 'it needs the approval of the user now' : null;
}

/** Returns the reason why a question is withdrawn after a restart; null if it stays open (CALL-JUDGEMENT-2). */
export async function questionChange(judging: Judging, call: ModelCall): Promise<string | null> {
  const { definition, tools } = judging;
  const isApproval = call.consent === 'ask';
  // The tools are not known until the instance exists, so the call is checked when it runs.
  if (isApproval && !tools && !definition.relay) return null;
  const change = isApproval ? await changeSince(judging, call) : null;
  if (change !== null) return change;
  const now = answerersOf(judging, tools?.execution.get(call.toolName) ?? null);
  if (listed(call.answerableBy) === listed(now)) return null;
  return 'who may answer it has changed, so it has to be asked again';
}

function listed(identities: readonly string[] | undefined): string {
  return JSON.stringify(identities?.toSorted() ?? null);
}

/** Returns whether the tool's schema converts the arguments to the same input as in the other process. */
export async function yieldsTheSame(
  entry: ToolEntry,
  {
    given,
    input,
    raw,
    toolName,
  }: Pick<ModelCall, 'given' | 'input' | 'toolName'> & { readonly raw?: boolean },
): Promise<boolean> {
  const again = await entry.validate(input);
  const isSame = (value: unknown): boolean => callKey(toolName, value) === callKey(toolName, input);
  if (again.ok && (raw === true || isSame(again.value))) return true;
  if (given === undefined) return false;
  const anew = await entry.validate(given);
  return anew.ok && isSame(anew.value);
}

/** Returns the result of a call that does not run because of this difference (CALL-JUDGEMENT-1). */
export function withdrawnCall({ consent, toolName }: ModelCall, change: string): ToolOutcome {
  const approval =
    consent === 'ask' || consent === 'lasting'
      ? 'The approval no longer counts'
      : 'It was put off by a restart';
  return toolError(`"${toolName}" was not run. ${approval}: ${change}.`, 'OUTDATED');
}

/**
 * Returns whether a call must not be repeated because it was running when its process ended and may have had an effect.
 */
export function mayHaveBegun(call: ModelCall, tool?: { idempotent: boolean }): boolean {
  const isDenied = call.consent === 'inherited_denial' || call.consent === 'author_denied';
  return !call.invalid && !isDenied && tool?.idempotent !== true;
}
