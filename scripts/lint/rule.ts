// The part of the linter's plugin interface (which is ESLint's) that these rules use.

/** A node of the syntax tree; its other fields depend on `type`. */
export interface SyntaxNode {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The file that a rule checks. */
export interface RuleContext {
  /** Absolute path. */
  readonly filename: string;
  readonly sourceCode: { getText(node: SyntaxNode): string };
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

/** A rule: the function to call for each node type. */
export interface Rule {
  create(context: RuleContext): Readonly<Record<string, ((node: SyntaxNode) => void) | undefined>>;
}

/** Returns the text of a string literal; undefined for any other node. */
export function stringValue(node: SyntaxNode | null | undefined): string | undefined {
  return node?.type === 'Literal' && typeof node['value'] === 'string' ? node['value'] : undefined;
}
