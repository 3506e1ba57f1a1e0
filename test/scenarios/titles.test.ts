// The title of a subagent's work, which lists show in place of a tool's description.

import { describe, expect, test } from 'vitest';
import { ConfigurationError, type SubagentConfig } from '../../src/index.ts';
import { textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, never, say } from '../support/subagent-runs.ts';
import type { TalkOptions } from '../support/text-talk.ts';

const rides = (title: unknown): TalkOptions => ({
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }]), say('Booked')),
      config: {
        interactive: true,
        ...(title !== undefined && { title: title as NonNullable<SubagentConfig['title']> }),
      },
    },
  },
});

async function ride(of: World, title: unknown) {
  const life = textLife(of, rides(title));
  await life.start();
  await life.type('use ride {"destination":"the airport"}');
  return life;
}

const toPlace = ({ destination }: Readonly<Record<string, unknown>>): string =>
  `A ride to ${String(destination)}`;

describe('the title of a subagent', () => {
  test('comes from the arguments, which the view does not contain', async () => {
    const { session } = await ride(world(), toPlace);
    const [view] = session.subagents.list();
    expect(view).toMatchObject({ title: 'A ride to the airport', task: 'Does ride' });
    expect(Object.keys(view ?? {})).not.toContain('args');
  });

  test("defaults to the task's description", async () => {
    const { session, errors } = await ride(world(), undefined);
    expect(session.subagents.list()[0]?.title).toBe('Does ride');
    expect(errors).toEqual([]);
  });

  test('survives a crash even if its function has changed', async () => {
    const of = world();
    let asked = 0;
    const before = await ride(of, (args: Readonly<Record<string, unknown>>) => {
      asked += 1;
      return toPlace(args);
    });
    expect(asked).toBe(1);
    before.kill();
    const after = textLife(
      of,
      rides(() => {
        asked += 1;
        return 'Something else';
      }),
    );
    await after.start();
    expect(after.session.subagents.list()[0]).toMatchObject({
      title: 'A ride to the airport',
      state: 'waiting_for_input',
    });
    await after.type('economy');
    expect(after.state().subagents).toMatchObject([
      { title: 'A ride to the airport', state: 'completed' },
    ]);
    expect(asked).toBe(1);
  });

  test.each<[string, unknown, string]>([
    ['no text', () => 17, 'expected a text that is not empty, got 17'],
    ['an empty one', () => '  ', 'expected a text that is not empty, got "  "'],
    ['a promise', () => never(), 'expected a text that is not empty'],
    [
      'a throw',
      () => {
        throw new Error('No destination');
      },
      'No destination',
    ],
  ])('causes a report, but no failure, if it is %s', async (_, title, message) => {
    const life = await ride(world(), title);
    expect(life.session.subagents.list()).toMatchObject([
      { title: 'Does ride', state: 'waiting_for_input' },
    ]);
    expect(life.errors).toHaveLength(1);
    expect(life.errors[0]?.where).toBe('ride.title()');
    expect(String(life.errors[0]?.error)).toContain(message);
  });

  test('ends with a complete character if it is truncated', async () => {
    const { session } = await ride(world(), () => 'x'.repeat(199) + '🚕'.repeat(300));
    expect(session.subagents.list()[0]?.title).toBe('x'.repeat(199));
  });

  test('throws an error if it is not a function', () => {
    expect(() => textLife(world(), rides('A ride'))).toThrow(ConfigurationError);
    expect(() => textLife(world(), rides('A ride'))).toThrow(/title/);
  });
});
