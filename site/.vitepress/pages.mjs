// The pages of the site, by the four kinds of documentation, and what else is evidence. A test compares it with docs/.
// @ts-check

/** @type {{ title: string, pages: [file: string, title: string][] }[]} */
export const sections = [
  {
    title: 'Start',
    pages: [
      ['README.md', 'What kpc does'],
      ['docs/install.md', 'Install kpc'],
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
      ['docs/apply.md', 'Apply a bundle on a node'],
      ['docs/air-gapped.md', 'Nodes without a network'],
      ['docs/monitoring.md', 'Monitor nodes'],
      ['docs/fleets.md', 'Compile for many nodes'],
      ['docs/library.md', 'Use the library'],
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
      ['docs/comparison.md', 'kpc beside other tools'],
    ],
  },
  {
    title: 'Project',
    pages: [
      ['CHANGELOG.md', 'Changes'],
      ['CONTRIBUTING.md', 'Contributing'],
    ],
  },
];

/**
 * Where a page is on the site: an index page has the address of its folder.
 *
 * @param {string} file
 */
export function addressOf(file) {
  return `/${file}`.replace(/README\.md$/, '').replace(/\.md$/, '.html');
}

/**
 * The part of a link behind "#", as GitHub makes it from a heading: the pages are read there too.
 *
 * @param {string} heading
 */
export function slugOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
