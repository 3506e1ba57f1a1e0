// Makes hidden characters visible: a character that screens do not draw, or draw in a different place, is written as a
// code such as \u202e.

/**
 * Control characters except line ends and tabs, format characters (zero-width, direction, tags), fillers, and variation
 * selectors.
 */
const HIDDEN =
  /\r(?!\n)|(?![\n\r\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/u;

/** Hidden characters that are left unchanged: those in emoji, and joiners between letters of scripts that need them. */
const JOINING =
  /(?<=\p{Extended_Pictographic})\ufe0f|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=[\p{scx=Arab}\p{scx=Beng}\p{scx=Deva}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Taml}])[\u200c\u200d](?=[\p{scx=Arab}\p{scx=Beng}\p{scx=Deva}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Taml}])/u;

const SIGNS = new RegExp(`(${JOINING.source})|${HIDDEN.source}`, 'gu');
/** A word, or a JSON escape that precedes it. */
const WORD = /\\(?:u[\da-f]{4}|.)|[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /\p{Script=Latin}/u;
/** Letters of other scripts that look like Latin letters. */
const ALIKE = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/gu;
const PLAIN = /^[\t\n -~]*$/;

/** Writes the characters as JSON escapes. */
export function escapes(text: string): string {
  return Array.from({ length: text.length }, (_, at) => {
    const unit = text.charCodeAt(at).toString(16);
    return `\\u${unit.padStart(4, '0')}`;
  }).join('');
}

/** Returns the text with its hidden characters written as codes. */
export function withoutHidden(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(SIGNS, (sign, joining?: string) => joining ?? escapes(sign));
}

/** Like `withoutHidden`, but also writes look-alike letters as codes if the word contains Latin letters. */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  return withoutHidden(
    text.replace(WORD, (word) => (LATIN.test(word) ? word.replace(ALIKE, escapes) : word)),
  );
}

/** Returns a call's arguments on one line, for a person to read: `to: "Ada", sum: 7`. */
export function argumentsText(input: unknown): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return visible(JSON.stringify(input) ?? '');
  return Object.entries(input)
    .flatMap(([name, value]) => {
      const json = JSON.stringify(value);
      const key = /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
      return json === undefined ? [] : [visible(`${key}: ${json}`)];
    })
    .join(', ');
}
