// The results of tool calls: a call's outcome, the failure of a runtime tool, and the messages that answer calls. The
// SDK and every provider refuse a history in which a call is not answered exactly once.

import type {
  AssistantContent,
  JSONValue,
  ModelMessage,
  ToolContent,
  ToolModelMessage,
  ToolResultPart,
} from 'ai';
import { codeOf, messageOf } from '../../values/errors.ts';
import { asJson } from '../../values/json.ts';
import { clip } from '../../values/clip.ts';

/** A tool's result as the model reads it. */
export type ToolResultOutput = ToolResultPart['output'];

/**
 * Returns an output as the model reads it if the tool has no `toModelOutput`: a string unchanged, any other value as
 * JSON.
 */
export function defaultModelOutput(output: JSONValue): ToolResultOutput {
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: output };
}

/** A tool call's outcome, as plain JSON. The model reads `modelOutput`. */
export type ToolOutcome =
  | {
      readonly status: 'ok';
      /** The return value of `execute`; null if undefined. `Truncated` if the value was too large. */
      readonly output: JSONValue;
      readonly modelOutput: ToolResultOutput;
    }
  | {
      readonly status: 'error';
      readonly error: { readonly message: string; readonly code?: ToolErrorCode };
      readonly modelOutput: ToolResultOutput;
    };

/** The code of the error. `FAILED`: the tool threw an error. `INVALID_OUTPUT`: the tool's result cannot be stored. */
export type ToolErrorCode =
  | 'FAILED'
  | 'TIMEOUT'
  | 'CANCELLED'
  | 'INVALID_INPUT'
  | 'INVALID_OUTPUT'
  | 'NOT_EXECUTABLE'
  /** The call was not approved. */
  | 'DENIED'
  /**
   * The call was not run, because the code has changed since the call was made, and now requires approval or different
   * arguments.
   */
  | 'OUTDATED'
  /** The process ended while the tool was running, so the outcome is unknown. */
  | 'NEEDS_RECONCILE';

const MAX_ERROR_CHARACTERS = 8000;

/** Returns an error as the result of a call that failed or did not run. */
export function toolError(message: string, code: ToolErrorCode): ToolOutcome {
  const value = clip(message, MAX_ERROR_CHARACTERS);
  return {
    status: 'error',
    error: { message: value, code },
    modelOutput: { type: 'error-text', value },
  };
}

export function toolDenied(reason: string): ToolOutcome {
  return {
    status: 'error',
    error: { message: reason, code: 'DENIED' },
    modelOutput: { type: 'execution-denied', reason },
  };
}

/** The failure of a runtime tool, as data with a stable code that cannot be mistaken for text. */
export interface ToolFailure {
  /** The failure, as the model reads it. */
  readonly error: { readonly code: string; readonly message: string };
}

export function toolFailure(code: string, message: string): ToolFailure {
  return { error: { code, message } };
}

/** Returns a thrown error as a result. */
export function thrownFailure(error: unknown): ToolFailure {
  return toolFailure(codeOf(error), messageOf(error));
}

/**
 * Returns whether an output is a `ToolFailure`. Not suitable for reports on subagents, because a failed subagent's
 * report also has an `error`.
 */
export function isToolFailure(output: unknown): output is ToolFailure {
  try {
    if (typeof output !== 'object' || output === null || !('error' in output)) return false;
    const { error } = output;
    return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
  } catch {
    // The output is a Proxy whose traps throw.
    return false;
  }
}

/** The answer to one call of a step. */
export type StepResult =
  | { readonly callId: string; readonly outcome: ToolOutcome }
  /** The user denied the call with these words. */
  | { readonly callId: string; readonly denied: string }
  /** The runtime answers the call itself with this JSON. */
  | { readonly callId: string; readonly output: unknown };

interface Call {
  readonly callId: string;
  readonly toolName: string;
  readonly input?: unknown;
  /** The model's arguments, if the user approved the call with different arguments. */
  readonly askedInput?: unknown;
}

const notRun: ToolResultOutput = { type: 'error-text', value: 'This call was not run.' };

/**
 * Returns the message that answers the calls of one step: one result for each, in the order of the calls. If a call has
 * several results, the first one is used; a call without a result is answered as not run.
 */
export function toolMessage(
  calls: readonly Call[],
  results: readonly StepResult[],
): ToolModelMessage {
  return {
    role: 'tool',
    content: calls.map((call) => {
      const { callId, toolName } = call;
      const result = results.find((given) => given.callId === callId);
      const output = result ? outputOf(result) : notRun;
      return resultPart(callId, toolName, 'askedInput' in call ? changed(call, output) : output);
    }),
  };
}

/** Adds a statement to the result: the call ran with arguments other than the model's. */
function changed({ input }: Call, output: ToolResultOutput): ToolResultOutput {
  const told = `The user changed the arguments of this call. It was run with these instead: ${JSON.stringify(input)}`;
  switch (output.type) {
    case 'text':
    case 'error-text':
      return { ...output, value: `${output.value}\n\n${told}` };
    case 'content':
      return { ...output, value: [...output.value, { type: 'text', text: told }] };
    case 'json':
    case 'error-json':
      return { ...output, value: { result: output.value, note: told } };
    case 'execution-denied':
      return output;
  }
}

function outputOf(result: StepResult): ToolResultOutput {
  if ('outcome' in result) return result.outcome.modelOutput;
  if ('denied' in result) return { type: 'execution-denied', reason: result.denied };
  const json = asJson(result.output);
  return json.ok
    ? defaultModelOutput(json.value)
    : { type: 'error-text', value: messageOf(json.message) };
}

/**
 * Returns the messages, changed so that every call is answered exactly once, before any other message. A call without a
 * result receives an error; results that are repeated or do not belong to a call are dropped. Returns the same array if
 * no change is needed.
 */
export function closeDanglingCalls(
  messages: readonly ModelMessage[],
  reason = 'This call has no result: the run stopped before it was answered.',
): readonly ModelMessage[] {
  const closed: ModelMessage[] = [];
  /** The calls that need a result. Calls that the provider executed may be answered later, or never. */
  const open = new Map<string, string>();
  const ofProvider = new Set<string>();
  let isMended = false;

  const close = (): void => {
    if (open.size === 0) return;
    isMended = true;
    const output: ToolResultOutput = { type: 'error-text', value: reason };
    closed.push({
      role: 'tool',
      content: [...open].map(([callId, toolName]) => resultPart(callId, toolName, output)),
    });
    open.clear();
  };

  for (const message of messages) {
    if (message.role === 'tool') {
      const content = message.content.filter((part) => isWanted(part, open, ofProvider));
      if (content.length !== message.content.length) isMended = true;
      if (content.length > 0) closed.push({ ...message, content });
      continue;
    }
    close();
    if (message.role === 'assistant') noteCalls(message.content, open, ofProvider);
    closed.push(message);
  }
  close();
  return isMended ? closed : messages;
}

function isWanted(
  part: ToolContent[number],
  open: Map<string, string>,
  ofProvider: ReadonlySet<string>,
): boolean {
  if (part.type !== 'tool-result') return true;
  return open.delete(part.toolCallId) || ofProvider.has(part.toolCallId);
}

function noteCalls(
  content: AssistantContent,
  open: Map<string, string>,
  ofProvider: Set<string>,
): void {
  if (typeof content === 'string') return;
  for (const part of content) {
    if (part.type !== 'tool-call') continue;
    if (part.providerExecuted === true) ofProvider.add(part.toolCallId);
    else open.set(part.toolCallId, part.toolName);
  }
}

function resultPart(
  toolCallId: string,
  toolName: string,
  output: ToolResultOutput,
): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName, output };
}

/**
 * Returns the progress text from a value that an `async function*` yielded, `{ progress: '…' }`; null for other values.
 */
export function progressIn(output: JSONValue): string | null {
  if (typeof output !== 'object' || output === null || !('progress' in output)) return null;
  const { progress } = output;
  const words = typeof progress === 'string' ? progress.trim() : '';
  return words === '' ? null : words;
}

/** Returns the message that tells a model that a call's outcome is unknown. */
export function inDoubtMessage(
  toolName: string,
  why = `The process ended while "${toolName}" was being run`,
): string {
  return `${why}: whether it was done is not known, and it was not run again. Find out before you repeat it.`;
}

/** Returns how a call ended, as it is reported to readers of the stream. */
export function endOf(outcome: ToolOutcome): { readonly output: unknown; readonly error?: string } {
  return outcome.status === 'ok'
    ? { output: outcome.output }
    : { output: null, error: outcome.error.message };
}
