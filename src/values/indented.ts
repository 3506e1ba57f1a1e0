// What somebody else said, as one entry of a list or a transcript.

/**
 * Only the first line stands at the margin, so that none of the others can pass for a heading,
 * another speaker or another entry.
 */
export function indented(text: string): string {
  return text.trim().replace(/\r?\n|\r|[\u2028\u2029]/g, '\n  ');
}
