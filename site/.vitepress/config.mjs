// @ts-check
import { addressOf, chineseSections, sections, slugOf } from './pages.mjs';

/** @param {import('./pages.mjs').Section[]} parts */
const sidebarOf = (parts) =>
  parts.map(({ title, pages }) => ({
    text: title,
    items: pages.map(([file, text]) => ({ text, link: addressOf(file) })),
  }));

export default {
  title: 'kpc',
  description: 'Kubernetes Services to the rules of kube-proxy, offline: iptables, IPVS and nftables',
  lang: 'en',
  // The site's path on its host, such as "/kpc/".
  base: process.env['KPC_SITE_BASE'] ?? '/',
  // scripts/build-site.mjs puts the pages here.
  srcDir: '.pages',
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  head: [
    ['link', { rel: 'icon', href: `${process.env['KPC_SITE_BASE'] ?? '/'}playground/icon.svg`, type: 'image/svg+xml' }],
  ],
  markdown: {
    // Anchors are the same as GitHub's.
    anchor: { slugify: slugOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
  },
  locales: {
    root: { label: 'English', lang: 'en' },
    'docs/zh-CN': {
      label: '简体中文',
      lang: 'zh-CN',
      link: '/docs/zh-CN/',
      themeConfig: {
        nav: [
          { text: '教程', link: '/docs/zh-CN/tutorial.html' },
          { text: '故障排查', link: '/docs/zh-CN/troubleshooting.html' },
          { text: '试验场（英文）', link: '/playground/', target: '_self' },
        ],
        sidebar: sidebarOf(chineseSections),
        outline: { level: [2, 3], label: '本页内容' },
        docFooter: { prev: '上一页', next: '下一页' },
        darkModeSwitchLabel: '外观',
        sidebarMenuLabel: '目录',
        returnToTopLabel: '回到顶部',
      },
    },
  },
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial.html' },
      { text: 'Commands', link: '/docs/commands.html' },
      { text: 'All pages', link: '/docs/' },
      { text: 'Playground', link: '/playground/', target: '_self' },
    ],
    sidebar: sidebarOf(sections),
    outline: { level: [2, 3], label: 'On this page' },
    // Most pages are in English only, so a change of language leads to the language's first page.
    i18nRouting: false,
    search: { provider: 'local', options: { detailedView: false } },
  },
};
