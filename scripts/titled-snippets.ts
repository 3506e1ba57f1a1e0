// The files on a page of the guide: each fenced block with a title, such as ```ts title="server.ts". `npm run
// check:snippets` compiles them, and test/browser/guide.test.ts runs them.

export interface TitledSnippet {
  readonly title: string;
  readonly code: string;
  /** The line of the page that contains the block's opening fence. */
  readonly line: number;
}

export function titledSnippets(page: string): readonly TitledSnippet[] {
  return [...page.matchAll(/^```\w+ title="([^"]+)"\n(.*?)^```$/gms)].map(
    ({ 1: title = '', 2: code = '', index }) => ({
      title,
      code,
      line: page.slice(0, index).split('\n').length,
    }),
  );
}
