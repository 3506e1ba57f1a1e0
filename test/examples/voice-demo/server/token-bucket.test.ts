import { expect, test } from 'vitest';
import { TokenBucket } from '../../../../examples/voice-demo/server/token-bucket.ts';
import { testEnvironment } from '../support.ts';

test('gives a burst, then what time brings, and never more than a burst', () => {
  const environment = testEnvironment();
  const bucket = new TokenBucket(environment.clock, { burst: 2, perSecond: 2 });
  expect([bucket.take(), bucket.take(), bucket.take()]).toEqual([true, true, false]);
  environment.advance(500);
  expect([bucket.take(), bucket.take()]).toEqual([true, false]);
  environment.advance(60_000);
  expect([bucket.take(2), bucket.take()]).toEqual([true, false]);
});

test('takes nothing when there is not enough', () => {
  const environment = testEnvironment();
  const bucket = new TokenBucket(environment.clock, { burst: 3, perSecond: 0 });
  expect(bucket.take(4)).toBe(false);
  expect(bucket.take(3)).toBe(true);
});
