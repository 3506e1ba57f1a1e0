import { describe, expect, test } from 'vitest';
import {
  ProgressPace,
  PROGRESS_PACE_MS,
} from '../../../../src/actors/session/effects/subagent-reports.ts';

describe('spoken progress', { tags: ['B48', 'RW14'] }, () => {
  test('`off`: never plays', () =>
    expect(new ProgressPace().allows('a', 'off', 50, 0)).toBe(false));

  test('`milestones`: plays exactly three times: at a quarter, half and three quarters', () => {
    const pace = new ProgressPace();
    const said = [10, 24, 25, 40, 30, 60, 62, 80, 99, 100].filter((percent, index) =>
      pace.allows('a', 'milestones', percent, index * PROGRESS_PACE_MS),
    );
    expect(said).toEqual([25, 60, 80]);
  });

  test('`milestones`: does not play progress that has no percentage', () =>
    expect(new ProgressPace().allows('a', 'milestones', null, 0)).toBe(false));

  test('`all`: plays at most once per pace interval for each subagent', () => {
    const pace = new ProgressPace();
    const at = [0, 1, PROGRESS_PACE_MS - 1, PROGRESS_PACE_MS, PROGRESS_PACE_MS + 1];
    expect(at.filter((now) => pace.allows('a', 'all', null, now))).toEqual([0, PROGRESS_PACE_MS]);
    expect(pace.allows('b', 'all', null, PROGRESS_PACE_MS + 1)).toBe(true);
    pace.forget('a');
    expect(pace.allows('a', 'all', null, PROGRESS_PACE_MS + 2)).toBe(true);
  });
});
