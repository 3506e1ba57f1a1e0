// Converts the text of a language model to a form that a small English voice can read: plain ASCII, no
// markup, words for symbols.

const SPOKEN_SIGNS: readonly (readonly [RegExp, string])[] = [
  // [label](address) is read as its label; a bare address is not read letter by letter.
  [/!?\[([^\]]*)\]\([^)]*\)/g, '$1'],
  [/https?:\/\/\S+/g, ' a link '],
  [/[\u2018\u2019\u201B\u2032]/g, "'"],
  [/[\u201C\u201D\u201F\u2033]/g, '"'],
  [/[\u2013\u2014\u2015]/g, ', '],
  [/\u2026/g, '...'],
  [/€/g, ' euros '],
  [/£/g, ' pounds '],
  [/°/g, ' degrees '],
  [/×/g, ' times '],
  [/[→⇒]/g, ' to '],
  [/&/g, ' and '],
  [/[*_`#~|<>^\\]+/g, ' '],
];

/** Returns the pronounceable text; empty if it has no letter and no digit. */
export function speakableText(text: string): string {
  let spoken = text;
  for (const [pattern, replacement] of SPOKEN_SIGNS) spoken = spoken.replace(pattern, replacement);
  spoken = spoken
    .normalize('NFKD')
    .replace(/[^\x20-\x7E\s]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
  return /[a-z0-9]/i.test(spoken) ? spoken : '';
}
