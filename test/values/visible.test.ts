// Text that is shown when the user is asked for approval: nothing in it is hidden, moved or disguised.

import { describe, expect, it } from 'vitest';
import { argumentsText, visible, withoutHidden } from '../../src/values/visible.ts';

describe('visible', () => {
  it.each([
    ['a change of direction', 'for \u202e004', 'for \\u202e004'],
    ['an isolate', '\u2066Ada\u2069', '\\u2066Ada\\u2069'],
    ['a zero-width space', 'rm\u200b -rf', 'rm\\u200b -rf'],
    ['a tag', 'a\u{e0041}', 'a\\udb40\\udc41'],
    ['a control of terminals', '\u001b[2J\u009b', '\\u001b[2J\\u009b'],
    ['a return to the beginning of the line', 'pay 900\rpay 1', 'pay 900\\u000dpay 1'],
    ['a filler', 'a\u3164b\u2800', 'a\\u3164b\\u2800'],
    ['a joiner between Latin letters', 'pay\u200dpal', 'pay\\u200dpal'],
    ['a variation selector after a letter', 'a\ufe0f', 'a\\ufe0f'],
    ['a Cyrillic letter in a Latin word', 'p\u0430ypal.com', 'p\\u0430ypal.com'],
    ['a Greek letter in a Latin word', 'g\u03bfogle', 'g\\u03bfogle'],
  ])('writes %s as its code', (_, text, shown) => {
    expect(visible(text)).toBe(shown);
    expect(visible(shown)).toBe(shown);
  });

  it.each([
    ['lines and tabs', 'one\r\ntwo\n\tthree'],
    ['an emoji of several signs', '\u2764\ufe0f \u{1f469}\u{1f3fd}\u200d\u{1f4bb}'],
    [
      'the joiners of Persian and Hindi',
      '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937',
    ],
    ['words of another script', 'Москва, Αθήνα und Zürich'],
    ['a line of JSON with other scripts', '"a\\nпривет"'],
  ])('keeps %s', (_, text) => {
    expect(visible(text)).toBe(text);
  });

  it('preserves a word in two scripts and writes only its hidden characters as codes', () => {
    expect(withoutHidden('Δt\u202e')).toBe('Δt\\u202e');
  });
});

describe('argumentsText', () => {
  it.each([
    [{ to: 'Ada', sum: 7 }, 'to: "Ada", sum: 7'],
    [{}, ''],
    [{ 'a: 1, b': [true, null] }, '"a: 1, b": [true,null]'],
    [{ to: 'Anna\n\u202e' }, 'to: "Anna\\n\\u202e"'],
    ['rm', '"rm"'],
    [[1], '[1]'],
    [null, 'null'],
  ])('writes %j', (input, text) => {
    expect(argumentsText(input)).toBe(text);
  });
});
