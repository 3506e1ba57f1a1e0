// Rule: an RxJS operator that measures time must be given a scheduler; otherwise it uses the global one, which is the
// wall clock.

import { stringValue, type Rule, type SyntaxNode } from './rule.ts';

const timed = new Set([
  'auditTime',
  'bufferTime',
  'debounceTime',
  'delay',
  'interval',
  'sampleTime',
  'throttleTime',
  'timeInterval',
  'timeout',
  'timer',
  'timestamp',
  'windowTime',
]);

/** Schedulers that are bound to the wall clock or to the real event loop. */
const ambient = new Set([
  'animationFrame',
  'animationFrameScheduler',
  'asap',
  'asapScheduler',
  'async',
  'asyncScheduler',
]);

export const rxjsNeedsScheduler: Rule = {
  create(context) {
    const operators = new Map<string, string>();
    return {
      ImportDeclaration(node) {
        const from = stringValue(node['source'] as SyntaxNode);
        if (from !== 'rxjs' && from !== 'rxjs/operators') return;
        for (const specifier of node['specifiers'] as readonly SyntaxNode[]) {
          const imported = (specifier['imported'] as SyntaxNode | undefined)?.['name'];
          if (typeof imported !== 'string') continue;
          if (ambient.has(imported)) {
            const message = `'${imported}' runs on the wall clock: take the scheduler from the Environment port`;
            context.report({ node: specifier, message });
          }
          const local = (specifier['local'] as SyntaxNode)['name'] as string;
          if (timed.has(imported)) operators.set(local, imported);
        }
      },
      CallExpression(node) {
        const operator = operators.get((node['callee'] as SyntaxNode)['name'] as string);
        if (operator === undefined) return;
        const given = node['arguments'] as readonly SyntaxNode[];
        if (given.some((argument) => /scheduler/i.test(context.sourceCode.getText(argument))))
          return;
        const message = `'${operator}' without a scheduler runs on the wall clock: pass one made from the Environment port`;
        context.report({ node, message });
      },
    };
  },
};
