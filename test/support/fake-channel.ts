// A `reach` channel that records the deliveries that it was asked to send.

import type { ReachChannel } from '../../src/index.ts';

type Item = Parameters<ReachChannel['send']>[0];
type Links = Parameters<ReachChannel['send']>[1];
type Answer = 'sent' | 'delivered' | 'read' | 'fails' | 'never' | Error;

export interface FakeChannel extends ReachChannel {
  readonly sent: readonly Item[];
  /** The links of each attempt. */
  readonly links: readonly Links[];
  /** The number of attempts that were aborted. */
  readonly aborted: number;
}

/** `answers`: the outcome of each attempt, in order. @defaultValue sent */
export function fakeChannel({
  answers = [],
  idempotent = true,
}: { readonly answers?: readonly Answer[]; readonly idempotent?: boolean } = {}): FakeChannel {
  const sent: Item[] = [];
  const links: Links[] = [];
  let aborted = 0;
  return {
    idempotent,
    sent,
    links,
    get aborted() {
      return aborted;
    },
    async send(item, own, signal) {
      const answer = answers[sent.length] ?? 'sent';
      sent.push(item);
      links.push(own);
      signal.addEventListener('abort', () => (aborted += 1));
      if (answer === 'fails') throw new Error('421 try again later');
      if (answer instanceof Error) throw answer;
      return answer === 'never' ? new Promise(() => {}) : answer;
    },
  };
}
