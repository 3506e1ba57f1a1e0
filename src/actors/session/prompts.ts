// The words in which the runtime speaks to the lead model. What a subagent says is
// quoted as data: it cannot speak in the runtime's name.

import type { Failure } from '../../machines/index.ts';
import type { QuestionOption } from '../session-views.ts';

/** What the model is told of the greeting that it shall say; undefined: it has none. */
export function greetingNote({ greeting }: { readonly greeting?: string }): string | undefined {
  return greeting === undefined ? undefined : `[SYSTEM: ${greeting}]`;
}

/** What the model gets as the answer to a call whose work goes on. */
export function pendingAnswer(message: string) {
  return {
    status: 'still_in_progress',
    message,
    important:
      'The work is NOT complete. Tell the user what the message says, in your own words. ' +
      'Do NOT tell the user that it is ready: you will be told when it is.',
  };
}

/** Said for a background call whose author wants nothing said, where the call cannot stay open. */
export const DEFAULT_PENDING_MESSAGE = 'I am working on it and will tell you when it is done.';

/** For a result that the model shall know and not tell. */
export function silentNote(prompt: string): string {
  return `${prompt} [SYSTEM: It is on the user's screen. Do not speak about it unless they ask.]`;
}

export function completedPrompt(toolName: string, text: string): string {
  return (
    `[SYSTEM: Background task "${toolName}" completed successfully. Result: ${fenced(text)}. ` +
    `Please inform the user about the result.]`
  );
}

export function failedPrompt(toolName: string, error: Failure): string {
  return (
    `[SYSTEM: Background task "${toolName}" failed. Exact error details: ${fenced(error.message)}. ` +
    `Tell the user the exact error details first, then ask how to proceed.]`
  );
}

export function cancelledNote(toolName: string, reason: string): string {
  return `[SYSTEM: Background task "${toolName}" was cancelled: ${fenced(reason)}. It has no result.]`;
}

export function questionPrompt(question: string, options: readonly QuestionOption[]): string {
  const choices = options.map((option) =>
    option.description ? `${option.label} (${option.description})` : option.label,
  );
  const suffix = choices.length > 0 ? ` Options: ${choices.map(fenced).join('; ')}` : '';
  return `[SUBAGENT QUESTION]: ${fenced(question)}${suffix}`;
}

/** An approval is read out exactly, with nothing added: the user consents to what was said. */
export function approvalPrompt(
  question: string,
  { readBack, askedAgain }: { readonly readBack: boolean; readonly askedAgain: boolean },
): string {
  const why = readBack
    ? 'Several approvals wait. The user said yes: read back which one this is. '
    : askedAgain
      ? 'The answer was not clear. '
      : '';
  return (
    `[SUBAGENT QUESTION]: ${fenced(readBack ? readBackText(question) : question)} ` +
    `[SYSTEM: ${why}Say exactly what would be done and ask for a clear yes or no. You cannot ` +
    `give this approval, and nothing is approved before you are told so.]`
  );
}

export function readBackText(question: string): string {
  return `To be sure, as more than one approval waits: ${question}`;
}

export function noticePrompt(label: string, text: string): string {
  return `[${fenced(label)}]: ${fenced(text)}`;
}

/** For a lead agent that does not say a question itself: the user sees it, and may talk of something else meanwhile. */
export function openQuestionNote(prompt: string): string {
  return (
    `${prompt} [SYSTEM: The user sees this question. It is open until you are told that it was ` +
    `answered. Respond to what the user says of other things; do not answer it in their place.]`
  );
}

/** `isAnswer`: what the user said answered the question; else it is still open. */
export function overheardNote(text: string, subagentName: string, isAnswer = true): string {
  if (!isAnswer)
    return `[SYSTEM: The user's words ${JSON.stringify(text)} were about a question of "${subagentName}" that is still open. They are dealt with; do not respond to them.]`;
  return `[SYSTEM: The user's words ${JSON.stringify(text)} answered a question of "${subagentName}". They are dealt with; do not respond to them.]`;
}

/** An answer that had to stop for something urgent is still owed. */
export const OWED_REPLY_NOTE =
  '[SYSTEM: Your answer to what the user said was cut off for this. Give it now.]';

/** Something else was told while a tool worked. */
export const LATE_ANSWER_NOTE =
  '[SYSTEM: What you had called has answered; its result stands above, with the call. Go on with your answer to the user.]';

/** A call that was made before in the telling of the same thing is not made again. */
export function alreadyCalledNote(toolName: string): string {
  return `[SYSTEM: You have called "${toolName}" with these arguments already: it was not called again. What it came to stands above.]`;
}

export function inputTimeoutMessage(attempt: number, max: number): string {
  return `The user did not respond in time. You may re-ask, or go on without an answer. (attempt ${attempt}/${max})`;
}

/** A bracket in quoted text must not close the runtime's own. */
export function fenced(text: string): string {
  return text.replaceAll('[', '(').replaceAll(']', ')');
}
