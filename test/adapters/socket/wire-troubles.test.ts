import { expect, test } from 'vitest';
import { WireTroubles } from '../../../src/adapters/socket/socket-connection.ts';

test('WIRE-TROUBLES-1, WIRE-TROUBLES-2: counts invented types, reports each once and limits its memory use', () => {
  const troubles = new WireTroubles();
  expect(troubles.unknown('a')).toBe(true);
  expect(troubles.unknown('a')).toBe(false);
  const told = Array.from({ length: 1000 }, (_, number) => troubles.unknown(`type ${number}`));
  expect(told.filter(Boolean)).toHaveLength(64);
  const { unknownEvents } = troubles.diagnostics;
  expect(unknownEvents['a']).toBe(2);
  expect(Object.keys(unknownEvents)).toHaveLength(65);
  expect(Object.values(unknownEvents).reduce((sum, count) => sum + count)).toBe(1002);
});
