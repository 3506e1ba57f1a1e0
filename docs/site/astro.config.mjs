import starlight from '@astrojs/starlight';
import { defineConfig } from 'astro/config';

const pages = (...slugs) => slugs.map((slug) => ({ slug }));

export default defineConfig({
  integrations: [
    starlight({
      title: 'Offstage',
      description: 'An actor-model runtime for subagents',
      // Pagefind makes the index of the search at build time: it works without a network.
      sidebar: [
        {
          label: 'Guide',
          items: pages(
            'guide/sessions',
            'guide/subagents',
            'guide/tools',
            'guide/questions',
            'guide/delivery',
            'guide/web-client',
            'guide/react',
            'guide/use-chat',
            'guide/vue-svelte',
            'guide/testing',
            'guide/deploying',
            'guide/security',
          ),
        },
        { label: 'Topics', items: [{ autogenerate: { directory: 'topics' } }] },
        { label: 'Design', collapsed: true, items: [{ autogenerate: { directory: 'design' } }] },
        { label: 'Reference', items: [{ autogenerate: { directory: 'reference' } }] },
      ],
    }),
  ],
});
