// The views for screens: all current parts, and the most recently ended ones.

import { expect, test } from 'vitest';
import { KeptViews } from '../../../../src/actors/session/state/projection.ts';

interface View {
  readonly id: string;
  readonly over: boolean;
}

const names = ({ list }: KeptViews<View>): string[] => list.map(({ id }) => id);

function twoKept() {
  const views = new KeptViews<View>(2, ({ over }) => over);
  return { views, show: (id: string, over = false) => views.set(id, { id, over }) };
}

test('KEPT-VIEWS-1: keeps all live views', () => {
  const { views, show } = twoKept();
  for (const id of ['a', 'b', 'c', 'd']) show(id);
  expect(names(views)).toEqual(['a', 'b', 'c', 'd']);
});

test('KEPT-VIEWS-1: keeps the views that ended last, regardless of when they started', () => {
  const { views, show } = twoKept();
  for (const id of ['oldest', 'b', 'c', 'd']) show(id);
  for (const id of ['b', 'c', 'oldest']) show(id, true);
  expect(names(views)).toEqual(['oldest', 'c', 'd']);
  expect(views.get('b')).toBeUndefined();
});

test('KEPT-VIEWS-1: treats a resumed view as live again', () => {
  const { views, show } = twoKept();
  show('a', true);
  show('a');
  for (const id of ['b', 'c', 'd']) show(id, true);
  expect(names(views)).toEqual(['a', 'c', 'd']);
});

test('KEPT-VIEWS-2: returns the same list object until something changes', () => {
  const { views, show } = twoKept();
  show('a');
  const { list } = views;
  expect(views.list).toBe(list);
  show('b');
  expect(views.list).not.toBe(list);
  expect(list).toHaveLength(1);
});

test('KEPT-VIEWS-3: returns views and lists that a reader cannot modify', () => {
  const views = new KeptViews<{ id: string; over: boolean }>(1, ({ over }) => over);
  views.set('a', { id: 'a', over: false });
  expect(() => Object.assign(views.list[0] ?? {}, { over: true })).toThrow(TypeError);
  expect(() => (views.list as unknown[]).push({ id: 'b', over: false })).toThrow(TypeError);
  expect(views.list).toEqual([{ id: 'a', over: false }]);
});
