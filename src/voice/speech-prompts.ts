// What a voice model is told when it shall say something that it was not asked for.

import type { Offer } from '../actors/session/lead.ts';

/** Instructions for the one response that says this offer. */
export function offerInstructions(offer: Offer): string {
  const again =
    offer.attempt > 1
      ? ' The user was interrupted before hearing it to the end: say it again.'
      : '';
  if (offer.kind === 'question')
    return (
      `Ask the user the question that was just put to you, now, in your own words, with its ` +
      `options. Do not answer it yourself and call no tool.${again} It was: ${offer.prompt}`
    );
  return (
    `Tell the user now, in one or two sentences, what you were just told. Call no tool.${again} ` +
    `It was: ${offer.prompt}`
  );
}

/** Of what the model said only this was heard; null: its words are not known. For a wire that cannot take the rest out of its memory. */
export function unheardNote(heard: string | null, playedMs: number): string {
  const part =
    heard === null
      ? `about ${Math.round(playedMs / 100) / 10} seconds`
      : heard === ''
        ? 'nothing'
        : JSON.stringify(heard);
  return `[SYSTEM: You were interrupted. Of what you were saying the user heard only ${part}. They do not know the rest.]`;
}

/** The model spoke to words that were not for it. */
export const UNPLAYED_NOTE =
  '[SYSTEM: What you last said was not played: the user does not know it. Do not say it again.]';

/** The answer to a call that the model made for words that were not for it. */
export const NOT_RUN = JSON.stringify({
  error: 'Not run: what the user said was for somebody else, and is dealt with.',
});

/** A picture was shown to a model on another connection. */
export function shownNote(mediaType: string): string {
  return `[SYSTEM: The user showed a picture here (${mediaType}). Who did not see it then cannot see it now.]`;
}
