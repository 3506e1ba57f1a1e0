import starlight from '@astrojs/starlight';
import { defineConfig } from 'astro/config';

const folder = (directory) => [{ autogenerate: { directory } }];

export default defineConfig({
  integrations: [
    starlight({
      title: 'Offstage',
      description: 'An actor-model runtime for subagents',
      customCss: ['./src/signatures.css'],
      // A line that does not fit goes on in the next one; a drawing whose lines cannot be broken scrolls by itself.
      expressiveCode: { defaultProps: { wrap: true } },
      // Each part in the order of docs/README.md, which scripts/site.ts writes into the pages.
      // Pagefind makes the index of the search at build time: it works without a network.
      sidebar: [
        { label: 'Guide', items: folder('guide') },
        { label: 'Topics', collapsed: true, items: folder('topics') },
        { label: 'Reference', collapsed: true, items: folder('reference') },
        { label: 'Design', collapsed: true, items: folder('design') },
        { label: 'Project', collapsed: true, items: folder('project') },
      ],
    }),
  ],
});
