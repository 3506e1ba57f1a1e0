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
