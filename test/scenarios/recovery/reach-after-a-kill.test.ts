// Deliveries that channels send to an absent user, in a process that is killed before or after any of its entries (P4,
// P6, P9).

import { describe, expect, test } from 'vitest';
import { fakeChannel } from '../../support/fake-channel.ts';
import { instantsOf, textLife, world, type World } from '../../support/crashes.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Way {
  readonly snapshots: boolean;
  /** Whether the session is in memory when its times come. */
  readonly isAwake: boolean;
  readonly idempotent: boolean;
}

const WAYS: readonly Way[] = [
  { snapshots: false, isAwake: true, idempotent: true },
  { snapshots: false, isAwake: false, idempotent: false },
  { snapshots: true, isAwake: true, idempotent: false },
  { snapshots: true, isAwake: false, idempotent: true },
];

/** The mail channel fails once and then sends; the user returns after both channels have sent the message. */
async function played({ snapshots, isAwake, idempotent }: Way, kill?: (of: World) => void) {
  const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: true } } : {});
  kill?.(of);
  // State outside the process, which survives when the process is killed.
  const mail = fakeChannel({ idempotent, answers: ['fails'] });
  const sms = fakeChannel({ idempotent });
  const reach = {
    channels: { mail, sms },
    steps: [
      { afterUnheardMs: 5 * MINUTE, by: 'mail' },
      { afterUnheardMs: HOUR, by: 'sms' },
    ],
  };
  const startedAt = of.environment.clock.now();
  for (let lives = 1; lives < 12; lives += 1) {
    const life = textLife(of, { reach });
    const { session } = life;
    const leave = session.attach();
    void session.start().then(leave, () => {});
    await of.environment.settle();
    if (life.isAlive() && !JSON.stringify(of.entries).includes('Parcel'))
      session.notifyBackground('Parcel');
    await of.environment.settle();
    const isLate = (): boolean => of.environment.clock.now() >= startedAt + 3 * HOUR;
    if (life.isAlive() && !isLate()) {
      if (!isAwake) {
        void session.hibernate().catch(() => {});
        await of.environment.advance(MINUTE);
      }
      // Like a pool, wakes the session when it is due: each process lives for half an hour.
      for (let minute = 0; minute < (isAwake ? 240 : 30) && life.isAlive(); minute += 1)
        await of.environment.advance(MINUTE);
      if (!isAwake || !life.isAlive()) continue;
    }
    if (!life.isAlive()) continue;
    session.attach();
    void life.start().catch(() => {});
    await of.environment.advance(2 * MINUTE);
    if (!life.isAlive()) continue;
    const { deliveries } = life.state();
    const { written } = of;
    const said = life.said().filter((words) => words.includes('Parcel'));
    await life.close();
    const keys = (sent: typeof mail.sent) => new Set(sent.map(({ key }) => key)).size;
    return {
      written,
      said: said.length,
      waiting: deliveries.filter(({ state }) => state !== 'delivered').length,
      mails: mail.sent.length,
      messages: sms.sent.length,
      keys: [keys(mail.sent), keys(sms.sent)],
    };
  }
  throw new Error('Expected a process that lives to its end');
}

describe.each(WAYS)(
  'a plan for the channels (snapshots: $snapshots, awake: $isAwake, idempotent: $idempotent)',
  async (way) => {
    const { written, ...seen } = await played(way);
    test('sends the text through each channel and then speaks it if no process is killed', () => {
      expect(seen).toEqual({ said: 1, waiting: 0, mails: 2, messages: 1, keys: [1, 1] });
    });

    test.each(instantsOf(written))(
      'P4, P6: sends and tells the words when killed %s entry %i',
      async (when, entry) => {
        const { said, waiting, mails, messages, keys } = await played(way, (of) =>
          of.killAt(entry, when),
        );
        // The process may have been killed after the message was spoken.
        expect(said).toBeLessThanOrEqual(1);
        expect(waiting).toBe(0);
        expect(keys[0]).toBeLessThanOrEqual(1);
        expect(keys[1]).toBeLessThanOrEqual(1);
        // An attempt whose end is not in the journal is repeated only with the same key, and only on an idempotent
        // channel.
        expect(mails).toBeLessThanOrEqual(way.idempotent ? 3 : 2);
        expect(messages).toBeLessThanOrEqual(way.idempotent ? 2 : 1);
        expect(mails + messages).toBeGreaterThan(0);
      },
    );
  },
);
