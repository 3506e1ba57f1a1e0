// The effects of one event are released together: any consequence of the first effect, in any unit and however soon,
// comes after the release of the others. This also applies when a unit starts, and when a slow journal has written an
// entry.

import { describe, expect, test } from 'vitest';
import {
  CommitUnit,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../../../src/actors/runtime/commit-unit.ts';
import type { Stamped } from '../../../src/machines/index.ts';
import { createHost, type Host } from '../../../src/actors/runtime/host.ts';
import { memoryJournal, type Journal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

/** The consequences of `first`: an event for the same unit, and one for another unit. */
class Body implements UnitBody {
  readonly name: string;
  readonly log: string[];
  readonly unit: CommitUnit;
  other: Body | null = null;

  constructor(name: string, host: Host, log: string[]) {
    this.name = name;
    this.log = log;
    this.unit = new CommitUnit(
      { id: name, scope: 'scope', kind: 'test', definitionVersion: 1 },
      host,
      this,
    );
  }

  take(_: string, event: UnitEvent & Stamped): UnitEvent & Stamped {
    return event;
  }

  apply(actor: string, { type }: { readonly type: string }): void {
    this.unit.draft.later(() => this.log.push(`${this.name} takes ${type}`));
    if (type === 'go') this.begin(actor);
    else this.unit.post(actor, { kind: 'do', name: `after ${type}`, params: undefined });
  }

  begin(actor: string): void {
    for (const name of ['first', 'second', 'third'])
      this.unit.post(actor, { kind: 'do', name, params: undefined });
  }

  release({ effect }: Posted): void {
    this.log.push(`${this.name} does ${effect.name}`);
    if (effect.name !== 'first') return;
    this.unit.receive('a', { type: 'own' });
    this.other?.unit.receive('a', { type: 'news' });
  }

  journalRefused(): void {}

  crashed(error: unknown): void {
    throw error;
  }
}

function units(journal: Journal) {
  const environment = simulatedEnvironment();
  const log: string[] = [];
  const host = createHost({
    environment,
    journal,
    onError: (error) => log.push(String(error)),
    onIgnored: () => {},
  });
  const one = new Body('one', host, log);
  one.other = new Body('two', host, log);
  return { environment, host, log, one };
}

const together = ['one does first', 'one does second', 'one does third'];
const after = ['one does after own', 'one takes own', 'two does after news', 'two takes news'];

function expectTogether(log: readonly string[]): void {
  const first = log.indexOf('one does first');
  expect(log.slice(first, first + together.length)).toEqual(together);
  expect(log.slice(first + together.length).toSorted()).toEqual(after);
}

describe('COMMIT-UNIT-2 ROUTER-1: the effects of one event, which run before any of their consequences', () => {
  test('run together when a unit starts and nothing else is running', () => {
    const { one, log } = units(memoryJournal());
    one.unit.start(() => one.begin('a'));
    expectTogether(log);
  });

  test('run together when an event is accepted', () => {
    const { one, log } = units(memoryJournal());
    one.unit.receive('a', { type: 'go' });
    expectTogether(log);
  });

  test('run together once a slow journal has written the entry, while nothing else is running', async () => {
    let keep: () => void = () => {};
    const slow = new Promise<void>((resolve) => (keep = resolve));
    const journal = memoryJournal();
    const { one, log, environment } = units({
      ...journal,
      // The following entries are written at once; only the order of the effects delays them.
      append: (entry) => (entry.event.type === 'go' ? slow : journal.append(entry)),
    });
    one.unit.receive('a', { type: 'go' });
    await environment.settle();
    expect(log).toEqual([]);
    keep();
    await environment.settle();
    expectTogether(log);
  });

  test('run together when the event is accepted ahead of other waiting tasks', () => {
    const { one, log, host } = units(memoryJournal());
    host.router.enqueue({
      run() {
        one.unit.receive('a', { type: 'go' });
        host.router.enqueue({ run: () => log.push('somebody else') });
      },
    });
    expectTogether(log.filter((line) => line !== 'somebody else'));
  });
});
