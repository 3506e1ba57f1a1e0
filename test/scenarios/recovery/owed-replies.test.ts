// The user speaks while the lead agent is reporting a result or replying to an earlier utterance, and the process dies
// at each entry in turn. The next process replies to the utterances that the model had not read, and to no others.

import { describe, expect, test } from 'vitest';
import type { SessionState } from '../../../src/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import type { ScriptedLanguageModel } from '../../../src/testing/doubles/scripted-model.ts';
import { instantsOf, textLife, world, type World } from '../../support/crashes.ts';
import { say } from '../../support/subagent-runs.ts';

const THINKS_MS = 1000;
const WORD_MS = 100;
const ORDER = 'The order was sent';

/** An event and its time in milliseconds. */
type Happening =
  | readonly [at: number, words: string]
  | readonly [at: number, order: 'ORDER', priority: 'normal' | 'urgent'];

interface Story {
  readonly name: string;
  readonly happens: readonly Happening[];
  /** The lead agent's messages if no process dies. */
  readonly said: readonly string[];
}

const stories: readonly Story[] = [
  {
    name: 'words over a telling',
    happens: [
      [0, 'ORDER', 'normal'],
      [500, 'one'],
    ],
    said: ['Told the order.', 'I have read one .'],
  },
  {
    name: 'words over the reply to earlier words',
    happens: [
      [0, 'one'],
      [500, 'two'],
    ],
    said: ['I have read one .', 'I have read one and two .'],
  },
  {
    name: 'words over a telling, and again over the reply',
    happens: [
      [0, 'ORDER', 'normal'],
      [500, 'one'],
      [2000, 'two'],
    ],
    said: ['Told the order.', 'I have read one .', 'I have read one and two .'],
  },
  {
    name: 'something urgent over a reply',
    happens: [
      [0, 'one'],
      [1250, 'ORDER', 'urgent'],
    ],
    said: ['I have ', 'Told the order.', 'I have read one .'],
  },
];

type StreamPart =
  Awaited<ReturnType<ScriptedLanguageModel['doStream']>>['stream'] extends ReadableStream<
    infer Part
  >
    ? Part
    : never;

const pause = (of: World, ms: number) =>
  new Promise<void>((resolve) => void of.environment.scheduler.schedule(resolve, ms));

/** A lead agent that reports the last message in its prompt, or replies with the user's words that it has read. */
const leadOf =
  (of: World): Script =>
  async ({ prompt }) => {
    await pause(of, THINKS_MS);
    if (JSON.stringify(prompt.at(-1)?.content).includes(ORDER)) return say('Told the order.');
    const read = prompt.flatMap(({ role, content }) =>
      role === 'user' ? (/"(one|two)"/u.exec(JSON.stringify(content))?.[1] ?? []) : [],
    );
    return say(`I have read ${read.join(' and ')} .`);
  };

/** A model that takes time for each word. */
const slowly =
  (of: World) =>
  (model: ScriptedLanguageModel): ScriptedLanguageModel => ({
    ...model,
    async doStream(call) {
      const { stream, ...rest } = await model.doStream(call);
      const slow = new TransformStream<StreamPart, StreamPart>({
        async transform(part, controller) {
          if (part.type === 'text-delta') await pause(of, WORD_MS);
          controller.enqueue(part);
        },
      });
      return { ...rest, stream: stream.pipeThrough(slow) };
    },
  });

const isThere = ({ transcript, deliveries }: SessionState, [, words]: Happening): boolean =>
  words === 'ORDER'
    ? deliveries.length > 0
    : transcript.some(({ role, text }) => role === 'user' && text === words);

/** Plays a story in as many processes as it needs. The user repeats an utterance that no process has stored. */
async function live(of: World, { happens }: Story) {
  const { clock } = of.environment;
  const begun = clock.now();
  const said: string[] = [];
  for (let lives = 1; ; lives += 1) {
    const life = textLife(of, { lead: leadOf(of), wire: slowly(of) });
    const stop = life.session.parts.subscribe((part) => {
      if (part.type === 'text.done' && life.isAlive()) said.push(part.text);
    });
    void life.start().catch(() => {});
    await of.environment.settle();
    const did = new Set<Happening>();
    while (life.isAlive() && clock.now() < begun + 20_000) {
      for (const happening of happens) {
        const [at, words, priority] = happening;
        if (at > clock.now() - begun || did.has(happening)) continue;
        did.add(happening);
        if (isThere(life.state(), happening)) continue;
        if (words === 'ORDER') life.session.notifyBackground(ORDER, { priority });
        else void life.session.sendText(words).catch(() => {});
        await of.environment.settle();
      }
      await of.environment.advance(50);
    }
    stop.unsubscribe();
    if (life.isAlive()) return { life, said, lives };
  }
}

describe.each(stories)('$name', async (story) => {
  const length = await (async () => {
    const of = world();
    const { life, said } = await live(of, story);
    test('replies if no process dies', () => expect(said).toEqual(story.said));
    const { written } = of;
    await life.close();
    return written;
  })();

  const instants = instantsOf(length);

  test.each(instants)('replies after a kill %s entry %i', async (when, entry) => {
    const of = world();
    of.killAt(entry, when);
    const { life, said, lives } = await live(of, story);
    expect(lives).toBe(2);
    // P4, P10: everything has been delivered, and the model that gave the last reply had read every utterance.
    const shown = life.state().transcript.map(({ text }) => text);
    const lastReply = (texts: readonly string[]) =>
      texts.findLast((text) => text.startsWith('I have read'));
    expect(lastReply(shown)).toBe(lastReply(story.said));
    expect(said.includes('Told the order.')).toBe(story.said.includes('Told the order.'));
    // Messages from before the process died are not repeated, except for a message whose last words were lost with the
    // process.
    expect(said.length).toBeLessThanOrEqual(story.said.length + 1);
    expect(life.errors).toEqual([]);
    await life.close();
  });
});
