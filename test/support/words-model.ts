// A model that interprets utterances over questions as a test requests (`consentModel`). It finds the marker of a
// meaning in its instructions, as a real model does.

import { scriptedModel, type SimulatedEnvironment } from '../../src/testing/index.ts';

/** The start of the line for each meaning. */
const LINES = {
  yes: 'the words are a plain yes',
  always: 'the words are such a yes, and ask',
  no: 'the words refuse',
  first: 'the words choose option 1',
  second: 'the words choose option 2',
  wait: 'the words only ask for time',
  repeat: 'the words only ask to hear',
  other: 'the words are about something else',
  unclear: 'anything else',
} as const;

export type Meant = keyof typeof LINES;

export interface WordsAsked {
  readonly words: readonly string[];
  readonly system: string;
  readonly user: string;
}

/**
 * Returns a model that interprets utterances in this way, and its requests. A meaning in brackets is the literal
 * answer, without a marker.
 */
export function wordsModel(
  meaning: (asked: WordsAsked) => Meant | readonly [literally: string] | Error,
  {
    delayMs = () => 0,
    environment,
  }: {
    readonly delayMs?: (call: number) => number;
    readonly environment?: SimulatedEnvironment;
  } = {},
) {
  const asked: WordsAsked[] = [];
  const model = scriptedModel({
    rules: true,
    ...(environment && { environment }),
    otherwise: ({ system, user }) => {
      const data = JSON.parse(/^\[data[^\]]*\] (.*)$/m.exec(user)?.[1] ?? '{}') as WordsAsked;
      const request = { words: data.words, system, user };
      asked.push(request);
      const meant = meaning(request);
      if (meant instanceof Error) throw meant;
      const lines = [...system.matchAll(/^(\S+): (.*)$/gm)];
      const result =
        typeof meant === 'string'
          ? lines.find(([, , line = '']) => line.startsWith(LINES[meant]))?.[1]
          : meant[0];
      return { text: JSON.stringify({ result }), delayMs: delayMs(asked.length) };
    },
  });
  return { model, asked };
}

/** Returns an interpreter that knows a few texts and treats all others as unclear. */
export function lexicon(known: Readonly<Partial<Record<Meant, readonly string[]>>>) {
  return ({ words }: WordsAsked): Meant => {
    const said = words.join(' ');
    const found = Object.entries(known).find(([, texts]) => texts.includes(said));
    return (found?.[0] ?? 'unclear') as Meant;
  };
}
