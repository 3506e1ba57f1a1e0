// Rule: a Date is created from a given time, because without one it reads the clock.

import type { Rule, SyntaxNode } from './rule.ts';

const message =
  'A Date without arguments reads the clock: pass a time that comes from the Environment port';

export const noAmbientDate: Rule = {
  create(context) {
    const check = (node: SyntaxNode): void => {
      const callee = node['callee'] as SyntaxNode;
      if (callee.type !== 'Identifier' || callee['name'] !== 'Date') return;
      // As a function, Date ignores its arguments and always reads the clock.
      const given = node['arguments'] as readonly SyntaxNode[];
      if (node.type === 'CallExpression' || given.length === 0) context.report({ node, message });
    };
    return { NewExpression: check, CallExpression: check };
  },
};
