// The pages of the site: the four kinds of documentation, then evidence and the project. A test looks for each page of docs here.
// @ts-check

/** @typedef {{ title: string, pages: [file: string, title: string][] }} Section */

/** @type {Section[]} */
export const sections = [
  {
    title: 'Start',
    pages: [
      ['README.md', 'What kpc does'],
      ['docs/install.md', 'Install kpc'],
      ['docs/playground.md', 'Try it in the browser'],
      ['docs/README.md', 'All pages, by purpose'],
    ],
  },
  { title: 'Tutorial', pages: [['docs/tutorial.md', 'From a manifest to a packet']] },
  {
    title: 'How to',
    pages: [
      ['docs/troubleshooting.md', 'Find out why'],
      ['docs/diff.md', 'Compare and describe'],
      ['docs/test.md', 'Test what packets do'],
      ['docs/ipvs-to-nftables.md', 'From IPVS to nftables'],
      ['docs/migrate.md', 'What a change of mode changes'],
      ['docs/ends.md', 'What ends, and when'],
      ['docs/apply.md', 'Apply a bundle on a node'],
      ['docs/leftovers.md', 'Remove what a kube-proxy left'],
      ['docs/review.md', 'Review pull requests'],
      ['docs/upgrade.md', 'Upgrade Kubernetes on nodes'],
      ['docs/air-gapped.md', 'Nodes without a network'],
      ['docs/monitoring.md', 'Monitor nodes'],
      ['docs/fleets.md', 'Compile for many nodes'],
      ['docs/library.md', 'Use the library'],
      ['docs/agents.md', 'Ask from an agent'],
    ],
  },
  {
    title: 'Reference',
    pages: [
      ['docs/commands.md', 'Commands and flags'],
      ['docs/kpc-yaml.md', 'kpc.yaml'],
      ['docs/bundle.md', 'Files of a bundle'],
      ['docs/diagnostics.md', 'Exit statuses and errors'],
      ['docs/codes.md', 'Every code'],
      ['docs/lint.md', 'kpc lint and its rules'],
      ['docs/glossary.md', 'Glossary'],
    ],
  },
  {
    title: 'Explanation',
    pages: [
      ['docs/packet-ways.md', 'A packet’s way'],
      ['docs/differences.md', 'How kpc differs'],
      ['docs/releases.md', 'Releases'],
      ['docs/security.md', 'Security'],
      ['docs/architecture.md', 'How kpc is built'],
      ['docs/extending.md', 'How to extend kpc'],
    ],
  },
  {
    title: 'Evidence',
    pages: [
      ['docs/performance.md', 'Speed and memory'],
      ['docs/rule-counts.md', 'Rules per Service'],
      ['docs/faults.md', 'Faults that were tried'],
      ['docs/real-inputs.md', 'Inputs that were tried'],
      ['docs/comparison.md', 'kpc compared with other tools'],
    ],
  },
  {
    title: 'Project',
    pages: [
      ['CHANGELOG.md', 'Changes'],
      ['CONTRIBUTING.md', 'Contributing'],
      ['docs/measurements.md', 'Measurements'],
    ],
  },
];

/**
 * The pages in Chinese. Each has an English twin in docs, with the same commands.
 *
 * @type {Section[]}
 */
export const chineseSections = [
  {
    title: '中文',
    pages: [
      ['README.zh-CN.md', 'kpc 做什么'],
      ['docs/zh-CN/tutorial.md', '从清单到数据包'],
      ['docs/zh-CN/ipvs-to-nftables.md', '从 IPVS 迁移到 nftables'],
      ['docs/zh-CN/troubleshooting.md', '故障排查'],
      ['docs/zh-CN/glossary.md', '术语表'],
    ],
  },
];

/** All pages of the site, by path in the project. */
export const pageFiles = [...sections, ...chineseSections].flatMap(({ pages }) => pages.map(([file]) => file));

/** The first screens in each language, by name on the site. They are not pages of the project but lead to these. */
export const homeFiles = new Map([
  ['index.md', 'site/home/en.md'],
  ['docs/zh-CN/index.md', 'site/home/zh-CN.md'],
]);

/** READMEs that have a first screen in front of them. */
const readmes = new Map([
  ['README.md', 'readme.md'],
  ['README.zh-CN.md', 'docs/zh-CN/readme.md'],
]);

/**
 * Names the file that the site's generator reads for a page. README.md becomes the index of its folder.
 *
 * @param {string} file
 */
export function nameOnSite(file) {
  return readmes.get(file) ?? file.replace(/README\.md$/, 'index.md');
}

/**
 * Returns a page's address on the site. An index page has the address of its folder.
 *
 * @param {string} file
 */
export function addressOf(file) {
  return `/${nameOnSite(file)}`.replace(/index\.md$/, '').replace(/\.md$/, '.html');
}

/**
 * Makes the part of a link behind "#" from a heading, as GitHub does, because the pages are read there too.
 *
 * @param {string} heading
 */
export function slugOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
}
