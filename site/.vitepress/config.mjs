// @ts-check
import { addressOf, sections, slugOf } from './pages.mjs';

export default {
  title: 'kpc',
  description: 'Kubernetes Services to the rules of kube-proxy, offline: iptables, IPVS and nftables',
  lang: 'en',
  // Of a site that is not at the top of its host: "/kpc/".
  base: process.env['KPC_SITE_BASE'] ?? '/',
  // scripts/build-site.mjs puts the pages here.
  srcDir: '.pages',
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  head: [
    ['link', { rel: 'icon', href: `${process.env['KPC_SITE_BASE'] ?? '/'}playground/icon.svg`, type: 'image/svg+xml' }],
  ],
  markdown: {
    // What looks like a tag in a page is text on GitHub's side of things, too.
    anchor: { slugify: slugOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
  },
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial.html' },
      { text: 'Commands', link: '/docs/commands.html' },
      { text: 'All pages', link: '/docs/' },
      { text: 'Playground', link: '/playground/', target: '_self' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      items: pages.map(([file, text]) => ({ text, link: addressOf(file) })),
    })),
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local', options: { detailedView: false } },
  },
};
