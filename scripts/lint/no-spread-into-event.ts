// Rule: an event is built field by field. A spread copies every property of an object, including any that a caller
// added: `{ type: 'answer.given', requestId, ...answer }` let an answer name another question. Write an optional field
// as `...(by === undefined ? {} : { by })`, and several as `...withoutUndefined({ by, text })`.

import { stringValue, type Rule, type SyntaxNode } from './rule.ts';

const message =
  'An event names its fields: a spread takes over whatever the object has. Expected `...(x === undefined ? {} : { x })` for an optional field';

export const noSpreadIntoEvent: Rule = {
  create(context) {
    return {
      ObjectExpression(node) {
        const properties = node['properties'] as readonly SyntaxNode[];
        if (!properties.some(isEventType)) return;
        for (const property of properties)
          if (property.type === 'SpreadElement' && !isInline(property['argument'] as SyntaxNode))
            context.report({ node: property, message });
      },
    };
  },
};

/** Tells whether the property is an event's type, such as `type: 'answer.given'`: event names contain a dot. */
function isEventType(property: SyntaxNode): boolean {
  if (property.type !== 'Property') return false;
  const key = property['key'] as SyntaxNode;
  if ((key['name'] ?? stringValue(key)) !== 'type') return false;
  const value = property['value'] as SyntaxNode;
  const literal = value.type === 'TSAsExpression' ? (value['expression'] as SyntaxNode) : value;
  return stringValue(literal)?.includes('.') === true;
}

/**
 * Tells whether the spread writes out its fields here: `{ x }`, `cond ? {} : { x }`, `cond && { x }`,
 * `withoutUndefined({ x })`.
 */
function isInline(node: SyntaxNode): boolean {
  const field = (name: string): SyntaxNode => node[name] as SyntaxNode;
  switch (node.type) {
    case 'ObjectExpression':
      return (field('properties') as unknown as readonly SyntaxNode[]).every(
        (property) =>
          property.type !== 'SpreadElement' || isInline(property['argument'] as SyntaxNode),
      );
    case 'ParenthesizedExpression':
      return isInline(field('expression'));
    case 'ConditionalExpression':
      return isInline(field('consequent')) && isInline(field('alternate'));
    case 'CallExpression':
      return (
        field('callee')['name'] === 'withoutUndefined' &&
        (field('arguments') as unknown as readonly SyntaxNode[]).every(isInline)
      );
    case 'LogicalExpression':
      return node['operator'] === '&&' && isInline(field('right'));
    default:
      return false;
  }
}
