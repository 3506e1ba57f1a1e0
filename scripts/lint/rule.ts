// The part of the linter's plugin interface (that of ESLint) which our rules use.

/** A node of the syntax tree; what else it has depends on `type`. */
export interface SyntaxNode {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** What a rule knows of the file it looks at. */
export interface RuleContext {
  /** Absolute path. */
  readonly filename: string;
  readonly sourceCode: { getText(node: SyntaxNode): string };
  report(problem: { readonly node: SyntaxNode; readonly message: string }): void;
}

/** A rule: for each type of node, what to do when one is met. */
export interface Rule {
  create(context: RuleContext): Readonly<Record<string, ((node: SyntaxNode) => void) | undefined>>;
}

/** The text of a string literal; of anything else, nothing. */
export function stringValue(node: SyntaxNode | null | undefined): string | undefined {
  return node?.type === 'Literal' && typeof node['value'] === 'string' ? node['value'] : undefined;
}
