// The messages that answer tool calls. The SDK and every provider refuse a history in which a call is not
// answered exactly once.

import type {
  AssistantContent,
  ModelMessage,
  ToolContent,
  ToolModelMessage,
  ToolResultPart,
} from 'ai';
import { messageOf } from '../../values/errors.ts';
import { asJson } from '../../values/json.ts';
import { defaultModelOutput, type ToolResultOutput } from './default-output.ts';
import type { ToolOutcome } from './tool-run.ts';

/** The answer to a call of the step. */
export type StepResult =
  | { readonly callId: string; readonly outcome: ToolOutcome }
  /** The user denied it, with these words. */
  | { readonly callId: string; readonly denied: string }
  /** Answered by the runtime itself, with JSON. */
  | { readonly callId: string; readonly output: unknown };

interface Call {
  readonly callId: string;
  readonly toolName: string;
}

const notRun: ToolResultOutput = { type: 'error-text', value: 'This call was not run.' };

/**
 * Returns the message that answers the calls of one step: one result each, in the order of the calls. The
 * first result of a call counts; a call without a result was not run.
 */
export function toolMessage(
  calls: readonly Call[],
  results: readonly StepResult[],
): ToolModelMessage {
  return {
    role: 'tool',
    content: calls.map(({ callId, toolName }) => {
      const result = results.find((given) => given.callId === callId);
      return resultPart(callId, toolName, result ? outputOf(result) : notRun);
    }),
  };
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
 * Returns the messages with every call answered exactly once, before any other message: an error answers a
 * missing result; repeated and unrelated results are dropped. Returns the same array if it is already
 * correct.
 */
export function closeDanglingCalls(
  messages: readonly ModelMessage[],
  reason = 'This call has no result: the run stopped before it was answered.',
): readonly ModelMessage[] {
  const closed: ModelMessage[] = [];
  /** Calls still to be answered. Those of the provider may be answered, but need not be. */
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
