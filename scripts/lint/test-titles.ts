// Rule: the title of a test says what the unit does. A title that starts with a preposition, a pronoun or an auxiliary
// is a fragment: its subject or its verb is elsewhere.

import type { Rule, SyntaxNode } from './rule.ts';
import { stringValue } from './rule.ts';

/** The ids of invariants and promises with which a title may start: `OUTBOX-3, P3: `. */
const IDS = /^(?:(?:(?:[A-Z][A-Z0-9]*-)+|P)\d+(?:, )?)+: /;
const FRAGMENT =
  /^(?:of|is|are|was|were|be|when|where|if|with|without|in|at|by|on|for|not|what|whatever|who|whoever|whom|whose|which|only|and|or|but|as|from|to|until|unless|while|after|before|because|even|so|than|that|then|there|they|them|their|its|it|he|she|his|her|once|though|although|over|under|between|beside|behind|about|across|through|during|can|may|must)\b/i;
/** Words from an earlier vocabulary of this repository, and pronouns that refer to no component. */
const VAGUE =
  /\b(?:nobody|somebody|anybody|whoever|whomever|told|untold|births?|twins?|strangers?|goes on|go on|lets? go|at rest|set aside|put away)\b/i;

/** Returns the call that names a test: `test` itself in `test.each(cases)` and `test.skipIf(condition)`. */
function nameOf(callee: SyntaxNode): string | undefined {
  if (callee.type === 'Identifier') return callee['name'] as string;
  const { name } = (callee['property'] ?? {}) as { readonly name?: string };
  // In the browser tests, it may also be named `it`.
  if (name !== undefined && !/^(?:each|for|skip|skipIf|runIf|only|concurrent|fails)$/.test(name))
    return undefined;
  const inner = callee['object'] ?? callee['callee'];
  return inner === undefined ? undefined : nameOf(inner as SyntaxNode);
}

export const testTitles: Rule = {
  create(context) {
    return {
      CallExpression(node) {
        const name = nameOf(node['callee'] as SyntaxNode);
        if (name !== 'test' && name !== 'it') return;
        const [first] = node['arguments'] as readonly SyntaxNode[];
        const title = stringValue(first)?.replace(IDS, '');
        if (first === undefined || title === undefined) return;
        const [word] = FRAGMENT.exec(title) ?? VAGUE.exec(title) ?? [];
        if (word === undefined) return;
        const message = `"${word}": expected a title that says what the unit does, such as "keeps a result pending when its client has left"`;
        context.report({ node: first, message });
      },
    };
  },
};
