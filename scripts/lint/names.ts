// Rule: one thing has one name. An identifier must not use a word from an earlier vocabulary of this repository.

import type { Rule, SyntaxNode } from './rule.ts';

/** The old words, and the current name for the same thing. */
const INSTEAD: readonly (readonly [word: RegExp, name: string])[] = [
  [/\b(?:nobodys?|somebodys?)\b/, 'what is missing: `noClient`, `hasNoWork`'],
  [/\b(?:births?|born)\b/, '`spawned`'],
  [/\b(?:foreign|strangers?)\b/, '`remote`, `unauthenticated`'],
  [/\bgoes on\b/, '`isRecoverable`, or what else it means'],
  [/\btwins?\b/, '`duplicate`'],
  [/\bset aside\b/, '`quarantined`'],
  [/\bat rest\b/, '`idle`'],
];
/** Names in stored records and public views. */
const KEPT: ReadonlySet<string> = new Set(['birth', 'bornAt', 'setAside']);

const wordsOf = (name: string): string =>
  name
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|[_$]+/g, ' ')
    .trim()
    .toLowerCase();

export const names: Rule = {
  create(context) {
    const check = (node: SyntaxNode): void => {
      const name = node['name'] as string;
      const [, instead] =
        (KEPT.has(name) ? undefined : INSTEAD.find(([word]) => word.test(wordsOf(name)))) ?? [];
      if (instead !== undefined)
        context.report({ node, message: `"${name}": expected ${instead}` });
    };
    return { Identifier: check, PrivateIdentifier: check };
  },
};
