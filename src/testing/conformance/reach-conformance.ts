// The conformance suite for `reach` channels: everything that a session needs from a channel.

import { z } from 'zod';
import type { ReachChannel } from '../../actors/ports/reach-channel.ts';
import { aFunction, check } from '../../values/checks.ts';
import { ConformanceError } from './conformance-error.ts';
import type { ConformanceCase } from './transport-conformance.ts';

type Item = Parameters<ReachChannel['send']>[0];

/** A channel and its receiver, for one case. */
interface ReachStage {
  /** The channel under test. */
  readonly channel: ReachChannel;
  /**
   * Returns the messages that the receiver got. `id` is the id by which the receiver recognises a repeated message, and
   * `text` is the text that the user reads.
   */
  received(): readonly { readonly id: string; readonly text: string }[];
  /** The length of the longest message that the receiver takes. @defaultValue long enough for all of an item's text */
  readonly maxChars?: number;
  /** Makes the receiver refuse all further messages. */
  refuse(): void;
  /** Closes the receiver. */
  close(): void | Promise<void>;
}

const NOTICE: Item = {
  key: 'ses/ä\n1/notice/0',
  sessionId: 'ses/ä\n1',
  deliveryId: 'notice',
  kind: 'notice',
  priority: 'normal',
  label: 'NEWS',
  text: 'Your parcel is here.',
};
const APPROVAL: Item = {
  ...NOTICE,
  kind: 'question',
  label: 'shopping',
  text: 'May I do this?',
  options: [{ id: 'approve', label: 'Yes, do it' }],
  call: { toolName: 'pay', input: { item: 'birch 16' } },
};
const HOSTILE = 'Subject: x\r\nBcc: all@example.com\r\n.\r\nQUIT\r\n\u0000\u202e<b>"';

function expectThat(isSo: boolean, promise: string): asserts isSo {
  if (!isSo) throw new ConformanceError(`The channel breaks a promise: ${promise}`);
}

const NEVER = new AbortController().signal;
const send = ({ channel }: ReachStage, item: Item) => channel.send(item, [], NEVER);
const isTrue = () => true;

const cases: Readonly<Record<string, (stage: ReachStage) => Promise<void>>> = {
  async 'it sends the text, and resolves with a receipt'(stage) {
    const receipt = await send(stage, NOTICE);
    const texts = stage.received().map(({ text }) => text);
    expectThat(texts.length === 1, 'one message arrives');
    expectThat(
      texts.every((text) => text.includes(NOTICE.text)),
      'the text arrives',
    );
    expectThat(['sent', 'delivered', 'read'].includes(receipt), 'the receipt is known');
  },
  async 'it sends the options and the exact call of an approval'(stage) {
    await send(stage, APPROVAL);
    const [text = ''] = stage.received().map((message) => message.text);
    for (const part of [APPROVAL.text, 'Yes, do it', 'pay', 'birch 16'])
      expectThat(text.includes(part), `the message contains "${part}"`);
  },
  async 'it lets the far end tell a repetition by the key, if it is idempotent'(stage) {
    for (const key of ['a', 'a', 'b']) await send(stage, { ...NOTICE, key });
    const ids = stage.received().map(({ id }) => id);
    const isTold = ids[0] === ids[1] && ids[0] !== ids[2];
    expectThat(
      !stage.channel.idempotent || isTold,
      'equal keys have equal ids, and others have not',
    );
  },
  async 'it treats text as data'(stage) {
    await send(stage, {
      ...APPROVAL,
      label: HOSTILE,
      text: `${HOSTILE}\n${'é'.repeat(19_000)} end`,
    });
    const texts = stage.received().map(({ text }) => text);
    const [text = ''] = texts;
    const { maxChars } = stage;
    const isWhole = maxChars === undefined ? text.includes('end') : text.includes('…');
    expectThat(
      texts.length === 1 && isWhole && text.length <= (maxChars ?? text.length),
      'one message arrives, with all text, or with … where the text was cut to fit',
    );
    for (const part of ['Yes, do it', 'pay', 'birch 16'])
      expectThat(text.includes(part), `the message contains "${part}" after a long text`);
  },
  async 'it rejects if the far end refuses'(stage) {
    stage.refuse();
    expectThat(await send(stage, NOTICE).then(() => false, isTrue), 'a refused message rejects');
  },
};

/**
 * Returns the cases that a `reach` channel must pass. `open` is called at the start of each case, and returns a
 * receiver that has no messages yet.
 *
 * ```ts
 * for (const { name, run } of reachConformance({ open })) test(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid.
 */
export function reachConformance(setup: {
  open(): ReachStage | Promise<ReachStage>;
}): readonly ConformanceCase[] {
  check('reachConformance(setup)', z.strictObject({ open: aFunction }), setup);
  return Object.entries(cases).map(([name, play]) => ({
    name,
    skipped: null,
    async run() {
      const stage = await setup.open();
      try {
        await play(stage);
      } finally {
        await stage.close();
      }
    },
  }));
}
