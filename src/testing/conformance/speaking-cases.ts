// Turns: replies, barge-in and the model's memory of interrupted speech, late or repeated transcripts, late audio, and
// a silent model.

import type { ConformanceScene } from './case.ts';
import { wasHeard } from './promises.ts';
import type { Talk } from './talk.ts';
import { plain } from './words.ts';
import { isQuiet, STORY } from './shared-cases.ts';

/** With late inference: how long the model keeps speaking after the user has started to speak. */
const SILENT_WITHIN_MS = 1500;
/** A text that takes long to generate: the user hears it before a model that writes has finished. */
const AGES = Array.from({ length: 4 }, () => STORY).join('. ');
/** The total time for the longest utterance, its transcript, a reply and the delivery. */
const LONGEST_MS = 30_000;
const LAST_WORDS = 'the end of the sea';

const replies = (): ConformanceScene => ({
  name: 'reply: what the user says is answered once, every time',
  plot: async (talk) => {
    for (const words of ['good morning', 'how are you', 'and the weather']) {
      await talk.says(words);
      await talk.until('it is answered', () => talk.playsOf(words).some(wasHeard));
      await isQuiet(talk);
    }
  },
  outcome: (talk) => talk.check('three times', talk.client.plays.length === 3),
});

/** Checks that the model's memory contains only speech that was heard: the rest was removed or reported. */
function remembersWhatWasHeard(talk: Talk): void {
  const { memory } = talk.model;
  const said = memory.filter(
    ({ kind, text }) => kind === 'assistant' && text.startsWith('You said: tell me'),
  );
  if (talk.capabilities.truncatesAudio)
    talk.check(
      'what was not heard is taken out of the memory of the model',
      said.every(({ text }) => !plain(text).includes(LAST_WORDS)),
    );
  else
    talk.check(
      'the model is told what was heard',
      memory.some(({ text }) => text.includes('You were interrupted')),
    );
}

const bargeIn = (): ConformanceScene => ({
  name: 'barge-in: the voice stops, and the model remembers what was heard',
  plot: async (talk) => {
    await talk.says(STORY);
    await talk.hears(STORY.slice(0, 12));
    await talk.pass(1000);
    const ended = talk.beginsToSay('stop it now please', { durationMs: 2 * SILENT_WITHIN_MS });
    await talk.pass(SILENT_WITHIN_MS);
    talk.check(`silence within ${SILENT_WITHIN_MS} ms`, !talk.client.isPlaying);
    await talk.pass(SILENT_WITHIN_MS);
    await ended;
    await talk.until('the user is answered', () =>
      talk.playsOf('stop it now please').some(wasHeard),
    );
    await isQuiet(talk);
    // The waiting message is delivered together with the next request.
    talk.session.notifyBackground('The mail has come');
    await talk.isDelivered('The mail has come');
  },
  outcome: (talk) => {
    const cut = talk.log.flatMap(({ event }) =>
      event.type === 'speech.interrupted' ? [event] : [],
    );
    const [story] = talk.client.plays;
    talk.check('one item was cut off', cut.length === 1);
    talk.check(
      'where it was cut off is what the client had played',
      cut[0]?.itemId === story?.itemId && cut[0]?.playedMs === heardMs(talk, story?.itemId),
    );
    const commands = talk.tap.connections.flatMap(({ passed }) => passed);
    const truncated = commands.some(
      (entry) =>
        'command' in entry &&
        entry.command.type === 'playout.truncate' &&
        entry.command.itemId === story?.itemId &&
        entry.command.playedMs === heardMs(talk, story?.itemId),
    );
    talk.check(
      'the item is truncated there if the wire can',
      truncated === talk.capabilities.truncatesAudio,
    );
    remembersWhatWasHeard(talk);
  },
});

const lateSound = (): ConformanceScene => ({
  name: 'sound after a cancel: what comes late of a response that was broken off is not heard',
  needs: ['deltas_after_cancel'],
  plot: async (talk) => {
    talk.model.strike('deltas_after_cancel', true);
    await talk.says(AGES);
    await talk.hears(AGES.slice(0, 12));
    await talk.pass(500);
    await talk.says('stop it now please');
    await talk.until('the user is answered', () =>
      talk.playsOf('stop it now please').some(wasHeard),
    );
  },
  outcome: (talk) => {
    const [story, ...others] = talk.client.plays;
    const [reply] = talk.model.replies;
    talk.check(
      'the model has stopped to make it, if it can be stopped',
      reply?.status === 'cancelled' || !talk.capabilities.cancelsResponses,
    );
    talk.check(
      'nothing is heard but the beginning of the story, and the answer',
      story?.isCleared === true &&
        others.every(({ itemId, playedMs }) => itemId !== story.itemId || playedMs === 0) &&
        others.filter(({ itemId, playedMs }) => playedMs > 0 && !isPartOf(story.itemId, itemId))
          .length === 1,
    );
  },
});

const lateWords = (): ConformanceScene => ({
  name: 'late transcript: what was said is known later, and answered once',
  needs: ['late_transcripts'],
  plot: async (talk) => {
    await talk.says('good morning to you', { transcript: { lateMs: 2500 } });
    await talk.until('it is answered', () => talk.playsOf('good morning to you').some(wasHeard));
    await isQuiet(talk);
    await talk.says('and the weather');
  },
  outcome: (talk) => {
    const known = talk.state.transcript.filter(({ role }) => role === 'user');
    talk.check(
      'the words are part of the conversation',
      known.some(({ text }) => plain(text).includes('good morning to you')),
    );
  },
});

const overtakenWords = (): ConformanceScene => ({
  name: 'late transcript: words of one utterance may come after the next one',
  needs: ['late_transcripts'],
  // A transport that cannot assign a transcript to its utterance may report this error.
  provokes: ['transport: '],
  plot: async (talk) => {
    await talk.says('good morning to you', { to: 'nobody', transcript: { lateMs: 3000 } });
    await talk.pass(400);
    await talk.says('and the weather', { to: 'nobody' });
    await talk.pass(8000);
  },
  outcome: (talk) => {
    talk.check('somebody answered', talk.client.plays.some(wasHeard));
  },
});

const twice = (): ConformanceScene => ({
  name: 'duplicated transcript: the words count once',
  needs: ['duplicated_transcripts'],
  plot: async (talk) => {
    await talk.says('good morning to you', { transcript: 'duplicated' });
    await talk.until('it is answered', () => talk.client.plays.some(wasHeard));
  },
  outcome: (talk) => {
    const said = talk.state.transcript.filter(({ role }) => role === 'user');
    talk.check('the user has said one thing', said.length === 1);
    talk.check('and was answered once', talk.client.plays.length === 1);
  },
});

const saysNothing = (): ConformanceScene => ({
  name: 'silence of the model: nothing is lost by it, and told when it speaks again',
  needs: ['silence'],
  // A transport may also report a different error.
  provokes: ['RESPONSE_TIMEOUT', 'the model did not answer'],
  plot: async (talk) => {
    talk.model.strike('silence', true);
    await talk.says('good morning to you', { to: 'nobody' });
    talk.session.notifyBackground('The mail has come');
    await talk.pass(20_000);
    talk.check('nothing was heard', talk.client.plays.length === 0);
    talk.check('nothing was lost', talk.deliveryOf('The mail has come')?.state !== 'dropped');
    talk.model.strike('silence', false);
    await talk.pass(60_000);
    await talk.says('are you there', { to: 'nobody' });
    await talk.isDelivered('The mail has come');
  },
});

const REPORTED_WITHIN_MS = 3000;

const fails = (): ConformanceScene => ({
  name: 'failure of the model: it is reported, the user learns of it, and nothing is lost by it',
  needs: ['failure'],
  // The error text comes from the provider. If the provider ends the turn without a text, it comes from the transport.
  provokes: [''],
  plot: async (talk) => {
    talk.model.strike('failure', true);
    await talk.says('good morning to you', { to: 'nobody' });
    talk.session.notifyBackground('The mail has come');
    await talk.until(
      'the failure is reported',
      () => talk.log.some(({ event }) => event.type === 'error.reported'),
      REPORTED_WITHIN_MS,
    );
    await talk.until('the user learns that no reply comes', () =>
      talk.log.some(({ event }) => event.type === 'utterance.unanswered'),
    );
    talk.check('nothing was lost', talk.deliveryOf('The mail has come')?.state !== 'dropped');
    talk.model.strike('failure', false);
    await talk.pass(60_000);
    await talk.says('are you there', { to: 'nobody' });
    await talk.isDelivered('The mail has come');
  },
});

const wordless = (): ConformanceScene => ({
  name: 'a reply without a word: it is requested again, and the user is answered',
  wordlessTurns: 1,
  plot: async (talk) => {
    await talk.says('good morning to you');
    await talk.until(
      'the user is answered',
      () => talk.playsOf('good morning to you').some(wasHeard),
      LONGEST_MS,
    );
  },
  outcome: (talk) =>
    talk.check(
      'the words have gone to the lead agent, once',
      talk.log.filter(({ event }) => event.type === 'utterance.routed' && event.to === 'lead')
        .length === 1,
    ),
});

const noPlayoutReports = (): ConformanceScene => ({
  name: 'loudspeaker that reports nothing: nothing counts as heard, and nobody waits for ever',
  voice: { maxAttempts: 2, playTimeoutMs: 20_000 },
  provokes: ['NO_PLAYOUT_REPORT'],
  plot: async (talk) => {
    talk.client.reports = false;
    talk.session.notifyBackground('The mail has come');
    await talk.until('it is a card', () => talk.deliveryOf('The mail has come')?.card === true);
  },
  outcome: (talk) =>
    talk.check('it is kept', talk.deliveryOf('The mail has come')?.state === 'pending'),
});

/** Returns whether this names a part of this item. A lowered or resumed item continues under another name. */
const isPartOf = (itemId: string, name: string): boolean =>
  name === itemId || name.startsWith(`${itemId}~`);

/** Returns how much the client has played of all parts of an item, in milliseconds. */
function heardMs({ client }: Talk, itemId = ''): number {
  const parts = client.plays.filter((play) => isPartOf(itemId, play.itemId));
  return parts.reduce((sum, { playedMs }) => sum + playedMs, 0);
}

/** Returns the audio of the model's first speech after all of it has been generated. */
function firstSound({
  tap,
}: Talk): { readonly itemId: string; readonly durationMs: number } | null {
  for (const entry of tap.connections[0]?.passed ?? [])
    if ('event' in entry && entry.event.type === 'response.ended')
      return entry.event.audio[0] ?? null;
  return null;
}

const listening = (): ConformanceScene => ({
  name: 'backchannel: a word of somebody who listens breaks nothing off that was made already',
  plot: async (talk) => {
    await talk.says(STORY);
    await talk.hears(STORY.slice(0, 12));
    // A model that generates speech in real time never gets ahead of the playback.
    const isLate = (): boolean => talk.client.plays.some(({ playedMs }) => playedMs > 3000);
    await talk.until('the story is made', () => firstSound(talk) !== null || isLate());
    await talk.says('mm-hm', { to: 'nobody', durationMs: 300 });
    await isQuiet(talk);
  },
  outcome: (talk) => {
    const has = (type: string): boolean => talk.log.some(({ event }) => event.type === type);
    talk.check('it was no interruption', !has('speech.interrupted') && has('backchannel.heard'));
    const { itemId, durationMs } = firstSound(talk) ?? { itemId: '', durationMs: Infinity };
    talk.check('what was made was heard to its end', heardMs(talk, itemId) >= 0.9 * durationMs);
  },
});

const withoutPause = (): ConformanceScene => ({
  name: 'long speech: nothing is said over 45 s without a pause, which are answered once',
  plot: async (talk) => {
    const words = 'only in Berlin and never in Paris';
    const ended = talk.beginsToSay(words, { durationMs: 45_000 });
    await talk.pass(5000);
    talk.session.notifyBackground('The oven is hot');
    await talk.pass(39_000);
    talk.check('nothing was said over it', talk.client.plays.length === 0);
    await talk.pass(1000);
    await ended;
    await talk.until('it is answered', () => talk.playsOf(words).some(wasHeard));
    await talk.isDelivered('The oven is hot');
  },
});

const television = (): ConformanceScene => ({
  name: 'an utterance that does not end: it holds the floor for at most a minute, and never again',
  needs: ['television'],
  plot: async (talk) => {
    talk.model.strike('television');
    void talk.beginsToSay('good evening', { durationMs: 5000 });
    await talk.pass(5000);
    talk.session.notifyBackground('The oven is hot');
    await talk.pass(9000);
    talk.check('the user has the floor', talk.playsOf('The oven is hot').length === 0);
    await talk.until(
      'the floor comes back',
      () => talk.playsOf('The oven is hot').some(wasHeard),
      2 * LONGEST_MS,
    );
    talk.session.notifyBackground('The cake is done');
    await talk.until(
      'that is told soon',
      () => talk.playsOf('The cake is done').some(wasHeard),
      10_000,
    );
    talk.model.strike('television', false);
  },
});

export const speakingScenes: readonly (() => ConformanceScene)[] = [
  replies,
  bargeIn,
  lateSound,
  lateWords,
  overtakenWords,
  twice,
  listening,
  saysNothing,
  fails,
  wordless,
  noPlayoutReports,
  withoutPause,
  television,
];
