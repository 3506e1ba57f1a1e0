// Finds the ends of sentences in any script.

/** Returns whether the text ends with a complete sentence. */
export function endsSentence(text: string): boolean {
  return /[.!?。！？؟…]["'”’»)\]]*\s*$/u.test(text);
}
