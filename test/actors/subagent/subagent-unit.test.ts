// The unit of a subagent as a pure function: it folds journals of earlier versions and never changes its arguments.

import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Stamped } from '../../../src/machines/index.ts';
import { memoryJournal } from '../../../src/index.ts';
import type { SubagentUnitEvent } from '../../../src/actors/subagent/subagent-events.ts';
import { SubagentLog } from '../../../src/actors/subagent/subagent-log.ts';
import {
  begin,
  reduce,
  takes,
  type SubagentUnitState,
} from '../../../src/actors/subagent/subagent-unit.ts';
import type { FrozenStory } from '../../support/frozen-stories.ts';
import { calls, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';

type Event = SubagentUnitEvent & Stamped;

const folder = new URL('../../corpus/', import.meta.url);

/** The events of each subagent in the frozen journals. */
function* lives(): Iterable<readonly [id: string, events: readonly Event[]]> {
  for (const name of readdirSync(folder).filter((it) => /^stories-\d+\.json$/.test(it)))
    for (const { entries } of JSON.parse(
      readFileSync(new URL(name, folder), 'utf8'),
    ) as FrozenStory[]) {
      const units = Map.groupBy(entries, ({ unit }) => unit);
      for (const [id, own] of units)
        if (own[0]?.event.type === 'subagent.spawned')
          yield [id, own.map(({ at, event }) => ({ ...event, at }) as Event)];
    }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

const plainly = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** Folds the events of a subagent and calls `look` at each step. */
function folded(
  [id, [spawned, ...events]]: readonly [string, readonly Event[]],
  look: (state: SubagentUnitState, event: Exclude<Event, { type: 'subagent.spawned' }>) => void,
): SubagentUnitState {
  if (spawned?.type !== 'subagent.spawned') throw new Error(`${id} has no spawn`);
  let [state] = begin(id, frozen(spawned));
  for (const event of events) {
    if (event.type === 'subagent.spawned') throw new Error(`${id} is spawned twice`);
    look(frozen(state), frozen(event));
    [state] = reduce(state, event);
  }
  return state;
}

const all = [...lives()];

describe('reduce', () => {
  it('applies every recorded event without changing its arguments (SUBAGENT-UNIT-2)', () => {
    let steps = 0;
    for (const life of all) {
      const state = folded(life, () => (steps += 1));
      expect(plainly(state)).toEqual(state);
    }
    expect(all.length).toBeGreaterThan(10);
    expect(steps).toBeGreaterThan(80);
  });

  it('takes the same step from a serialised state as from a live one (SUBAGENT-UNIT-1)', () => {
    for (const life of all)
      folded(life, (state, event) => {
        const stored = plainly(state);
        expect(takes(stored, event)).toBe(takes(state, event));
        expect(plainly(reduce(stored, plainly(event)))).toEqual(plainly(reduce(state, event)));
      });
  });
});

describe('an event whose step throws', () => {
  afterEach(() => vi.restoreAllMocks());

  it('does not leave an entry, and settles its call as an error (SUBAGENT-6)', async () => {
    const right = SubagentLog.prototype.fold;
    vi.spyOn(SubagentLog.prototype, 'fold').mockImplementation(function (
      this: SubagentLog,
      event,
      before,
    ) {
      if (event.type === 'tool.settled' && event.outcome.status === 'ok')
        throw new Error('no such thing');
      right.call(this, event, before);
    });
    const journal = memoryJournal({ keep: Infinity });
    const { outcome } = subagentRuns(steps(calls(['look', {}]), say('over')), { journal });
    const tools = { look: simpleTool(() => 'a map') };
    const { status, toolLedger } = await outcome({ tools }, { id: 'run' });
    expect(status).toBe('completed');
    expect(toolLedger).toMatchObject([{ status: 'error', output: 'no such thing' }]);
    const types = journal.read().map(({ event: { type } }) => type);
    expect(types.filter((type) => type === 'tool.settled')).toHaveLength(1);
    expect(types).not.toContain('entry.set_aside');
  });
});
