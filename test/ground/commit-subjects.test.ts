import { describe, expect, it } from 'vitest';
import { faultOf } from '../../scripts/commit-subjects.ts';

describe('faultOf', () => {
  it.each([
    'fix(text): keep a result pending when its subscriber left',
    'docs: reword the comments on tasks',
    'feat(serve)!: process each answer once',
    'test(site): expect the current docstring of examine',
  ])('accepts: %s', (subject) => {
    expect(faultOf(subject)).toBeNull();
  });

  it.each([
    ['keep a result pending', 'type(scope)'],
    ['fix(Text): keep a result', 'type(scope)'],
    ['fix: Keep a result', 'type(scope)'],
    ['fix:keep a result', 'type(scope)'],
    ['wip: keep a result', 'type(scope)'],
    ['fix(text): a model that tells a notice', 'got "a"'],
    ['fix(text): keeps a result pending', 'got "keeps"'],
    ['fix(text): kept', 'type(scope)'],
    ['fix(text): fixed the result', 'got "fixed"'],
    ['test: fixing three titles', 'got "fixing"'],
    ['test: add limits; the page names its quotes', 'semicolon'],
    [`fix: keep ${'a result '.repeat(12)}`, 'characters'],
  ])('refuses: %s', (subject, fault) => {
    expect(faultOf(subject)).toContain(fault);
  });
});
