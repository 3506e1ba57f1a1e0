// The notes and instructions that ask a voice model to speak unprompted, and the notes about speech that was not heard.

import { note, sentence, type Note } from '../../actors/notes/note.ts';
import type { TransportCapabilities } from '../connection/transport.ts';
import type { Offer } from '../../actors/session/lead/speaker.ts';

/**
 * Returns reply instructions for a model that replies on its own. If the model's reply only acknowledges the answer, it
 * is played instead of the runtime's acknowledgement (`acknowledgementIn`).
 */
const acknowledge = (toolCalls: TransportCapabilities['toolCalls']): string =>
  ' When they answer, ' +
  (toolCalls === 'delegation'
    ? 'delegate it, and say only their choice, if they made one, in their language; "One moment." is said for you. '
    : 'call settle_question, and say only their choice, if they made one, and "One moment.", in their language. ') +
  'Nothing is done yet. If they want time, say only "Take your time."; if they want to hear it again, only "Sure.". ' +
  'Respond to anything else as always.';

/**
 * Returns the instructions for the single response that speaks this offer. The instructions name the note that contains
 * the content. They do not repeat quoted content, because instructions have the system role.
 */
export function offerInstructions(
  offer: Offer,
  mark: string,
  { responds, toolCalls }: Pick<TransportCapabilities, 'responds' | 'toolCalls'>,
): string {
  const { attempt, begunIn } = offer;
  const again =
    attempt > 1 ? ' The user was interrupted before hearing it to the end: say it again.' : '';
  // Earlier versions stored the prompt as plain text without a marker; such a prompt is the last note that the model
  // received.
  const which = typeof offer.prompt === 'string' ? 'the last note' : `note ${mark}`;
  if (offer.kind === 'question')
    return (
      `Ask the user the question of ${which} now, in your own words, with its options; an approval, word for word. ` +
      `Do not answer it yourself; call no tool for this.${again}` +
      (responds === 'by_itself' ? acknowledge(toolCalls) : '')
    );
  const what = typeof offer.prompt === 'string' ? which : `the content of ${which}`;
  if (begunIn !== undefined) {
    const first =
      attempt === begunIn + 1 ? 'Begin with words such as "As I was saying", and go' : 'Go';
    return (
      `The user heard the beginning when you told them ${what}, and then interrupted you. ${first} on with ` +
      `the first sentence that they did not hear to its end; do not begin again. Call no tool.`
    );
  }
  return `Do now what ${which} asks, in one or two sentences. Do not mention notes. Call no tool.${again}`;
}

/**
 * Returns a note about which part of the model's speech was heard; `heard` is null if the words are unknown. The note
 * is for transports that cannot delete the unheard part from the model's memory.
 */
export function unheardNote(heard: string | null, playedMs: number): Note {
  const seconds = Math.round(playedMs / 100) / 10;
  if (heard === null)
    return note(
      sentence`You were interrupted. Of what you were saying the user heard only about ${seconds} seconds. They do not know the rest.`,
    );
  if (heard === '')
    return note(sentence`You were interrupted. The user heard nothing of what you were saying.`);
  return note(
    sentence`You were interrupted. Of what you were saying the user heard only what is quoted. They do not know the rest.`,
    { heard },
  );
}

/** Informs the model that a noise interrupted its reply (INTERRUPTIONS-6). */
export const CUT_NOTE = note(
  sentence`A noise interrupted you, and the user said nothing. Say again what they did not hear.`,
);

/** Informs the model that its response to words for a subagent was not played. */
export const UNPLAYED_NOTE = note(
  sentence`What you last said was not played: the user does not know it. Do not say it again.`,
);

/** The output of a call that the model made in response to words that were not addressed to it. */
export const NOT_RUN = JSON.stringify({
  error: 'Not run: what the user said was for somebody else, and is dealt with.',
});

/** Returns a note that states that a picture was shown to the model on an earlier connection. */
export function shownNote(mediaType: string): Note {
  return note(
    sentence`The user showed a picture here. Who did not see it then cannot see it now.`,
    { mediaType },
  );
}

/** Returns whether calls made on another connection are sent as text, because the transport has no items for them. */
export function tellsCallsInWords(can: TransportCapabilities): boolean {
  return can.takesSystemMessages === false || can.toolCalls === 'delegation';
}

/** Returns a note about a call made on another connection. */
export function recallNote(callId: string, name: string, args: string): Note {
  return note(
    sentence`You have made this call before. Do not make it again: its result follows when it is there.`,
    { callId, tool: name, arguments: args },
  );
}

/** Returns the output of a call as a note, for a connection that does not know the call. */
export function answerNote(callId: string, name: string | null, output: string): Note {
  return note(sentence`The result of a call that you made before.`, {
    callId,
    ...(name !== null && { tool: name }),
    output,
  });
}
