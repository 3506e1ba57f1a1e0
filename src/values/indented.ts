// Foreign text as one entry of a list or a transcript.

/**
 * Indents all lines but the first, so that none of them can pass for a heading, another speaker or another
 * entry.
 */
export function indented(text: string): string {
  return text.trim().replace(/\r?\n|\r|[\u2028\u2029]/g, '\n  ');
}
