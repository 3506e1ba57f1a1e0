// Finds the ends of sentences, in any script.

/** Tells whether a text ends with the end of a sentence. */
export function endsSentence(text: string): boolean {
  return /[.!?。！？؟…]["'”’»)\]]*\s*$/u.test(text);
}
