import { count, formatCount, joinWords, escapeText, quote, shellWord, quotePrintable } from '../../base/printable.ts';
import { boundWords, gitWords, lineFaultWords, programWords, unreadWords } from './unread.ts';
import { readAsWords } from '../grounds.ts';
import { pathBelow, resolvePath } from '../../base/names.ts';
import { bundleFaultWords, mergeConflict } from './bundle.ts';
import { adviseOnOddSpace, nameCharacter } from './fields.ts';
import { portalChains } from '../../kube-proxy/chain-names.ts';
import { behaviourChanges } from '../../kube-proxy/releases.ts';
import { behaviourWords } from './behaviours.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  fullListings,
  noServiceWords,
  unlistedWords,
  lostJumpCause,
  lostRuleCause,
  unshownJumpWords,
} from '../way/lack.ts';
import { byCase, didYouMean, type Words, type WordsOf, nameSome } from './rows.ts';
import type {
  DumpNote,
  OddYaml,
  ReadByCommand,
  RenderedPair,
  ToBuild,
  UnrenderedTemplate,
  fileFindings,
} from '../../base/findings/files.ts';

/** Proposes a command that renders a folder and reads the result. */
function renderWays(program: string, { folder, into }: ToBuild): readonly string[] {
  if ('compare' in into) return [`run "${renderPair(into, folder ?? '')}"`];
  const { command, file } = into;
  const own = folder === undefined ? undefined : into.checkouts?.find(({ name }) => holds(name, folder));
  const inTree =
    own?.checkout && resolvePath(resolvePath('../new', own.checkout.path), pathBelow(own.name, folder ?? ''));
  const path = inTree ?? folder;
  const render = `${program} ${path === undefined ? 'FOLDER' : shellWord(path)}`;
  if (command === undefined) return [`give the output of "${render}" in its place`];
  return [`run "${feed(own?.checkout ? inCheckout(render, own.checkout.revision, '../new') : render, command, file)}"`];
}

/** Runs a command while a revision is checked out. Afterwards, the same command works again, also for a later commit. */
function inCheckout(command: string, revision: string, tree: string): string {
  return `git worktree add --detach ${tree} ${shellWord(revision)} && { ${command}; git worktree remove --force ${tree}; }`;
}

function feed(render: string, command: string, file: string | undefined): string {
  return file === undefined ? `${render} | ${command}` : `${render} > ${file} && ${command}`;
}

function holds(input: string, folder: string): boolean {
  return input === folder || pathBelow(input, folder) !== '';
}

/** Renders the folder on both sides. If only one side were rendered, it would differ from the other side's files. */
function renderPair({ compare, sides }: RenderedPair, folder: string): string {
  // A path in a git revision can be mistaken for a path below the working folder.
  const own = sides
    .toSorted((a, b) => Number(!a.checkout) - Number(!b.checkout))
    .find(({ name }) => holds(name, folder));
  const below = own ? pathBelow(own.name, folder) : '';
  const trees = ['../old', '../new'] as const;
  const paths = sides.map(({ name, checkout, isFolder }, i) => {
    const path = checkout ? resolvePath(trees[i] ?? '', checkout.path) : name;
    return shellWord(isFolder && below !== '' ? resolvePath(path, below) : path);
  });
  return trees.reduceRight(
    (command, tree, i) => {
      const revision = sides[i]?.checkout?.revision;
      return revision === undefined ? command : inCheckout(command, revision, tree);
    },
    `${compare} --render ${paths.join(' ')}`,
  );
}

export function buildWays(build: ToBuild): readonly string[] {
  return renderWays('kubectl kustomize', build);
}

function feedWords({ command, file }: ReadByCommand): string {
  if (command === undefined) return ', and give its output in their place';
  const to = file === undefined ? 'pipe its output into' : `write its output to ${file}, then run`;
  return `, and ${to} "${command}"`;
}

function describeTemplate(details: UnrenderedTemplate): Words {
  const { count: number, mark, chart, folder, isLeftOut, render, into, exclude } = details;
  const others = folder === undefined || isLeftOut ? undefined : `leave it out with --exclude ${exclude ?? 'PATTERN'}`;
  const pipe = 'compare' in into ? '' : feedWords(into);
  const how = render === undefined ? undefined : renderWays(render, { folder: chart, into });
  const ways = [...(how ?? [`render it first, with the program that fills in such templates${pipe}`]), others];
  if (chart !== undefined)
    return [
      `${number === 1 ? 'a Helm template' : `the first of ${number} Helm templates`} in the chart ${chart}`,
      ...ways,
    ];
  const more = number === 1 ? '' : ` (as in ${count(number - 1, 'more file')} of ${folder ?? 'the input'})`;
  return [`${quote(mark)} is part of an unrendered template${more}`, ...ways];
}

/** Says why a dump does not name Services, and what to add so that they have names. */
export const holdsNoNames = (mode: ProxyMode): string => `a node in ${modeFacts[mode].title} stores no Service names`;
export const addNames = 'add manifests with -f to name them';

const unreachedEffects = {
  addresses: 'no address of a Service is served',
  nodePorts: 'no node port is served',
  sourceRanges: 'source ranges let all clients pass',
} as const;

const lostJumpEffects = {
  services: 'no packet from there reaches a Service',
  masquerading: 'kube-proxy masquerades no packet',
  rules: 'no packet from there meets its rules',
} as const;

const dumpNote = byCase<'note', DumpNote>('note', {
  'lost-jump': ({ from, to, table, effect }) =>
    `nothing in ${joinWords(from, 'or')}${effect === 'rules' ? ` of table ${table}` : ''} jumps to ${to}, so ${lostJumpEffects[effect]}: ${lostJumpCause}`,
  unreached: ({ from, to, facts }) =>
    `nothing in ${joinWords(from, 'or')} ${to.kind === 'drop' ? 'drops packets' : `leads to ${to.name}`}, so ${unreachedEffects[facts]}: ${lostRuleCause('name' in to ? to.name : undefined)}`,
  endless: ({ from, service, to }) =>
    `nothing in ${from} leads to ${to ?? 'an endpoint'}, so no packet to ${service} reaches ${to === undefined ? 'one' : 'it'}: ${lostRuleCause()}`,
  'unshown-jump': ({ command, from, to }) => [unshownJumpWords(from, to), `add all of the output of ${command}`],
  'two-modes': ({ logged, shown }) =>
    `the log is from kube-proxy in ${modeFacts[logged].title}, but the dump shows ${modeFacts[shown].title}: they come from different nodes or times`,
  nameless: ({ mode, isNamed }) => [
    `${isNamed ? 'Services that no manifest names are' : 'Services are'} shown by address, because ${holdsNoNames(mode)}`,
    isNamed ? undefined : addNames,
  ],
  'doubtful-servers': ({ servers }) => [
    `${servers} of the virtual servers may belong to another program`,
    'add the output of ipset save and ip -j addr to find out',
  ],
  'foreign-servers': ({ servers }) =>
    `${count(servers, 'virtual server')} left out: their addresses are neither on kube-ipvs0 nor in kube-proxy's sets, so another program made them`,
  'proxy-ports': ({ mode }) =>
    `in ${modeFacts[mode].title}, ${portalChains} lead to ports where kube-proxy itself accepts connections, so no rule shows the endpoints`,
  incomplete: ({ lacks }) => `the dump does not hold all of ${lacks.join(', ')}, so there may be more Services`,
  unlisted: (details) => [unlistedWords(details), `add all of the output of ${fullListings[details.lacks]}`],
  'no-service': ({ why }) => noServiceWords(why),
});

const oddYaml: Readonly<Record<OddYaml, string>> = {
  'text-behind-marker': 'text after "---" or after the end of a document',
  'lone-end': 'the end of a document ("...") without a document',
  'lone-block': 'a document that is only a block of text',
  'unknown-alias': 'an alias without its anchor before it',
  'alias-in-itself': 'an alias inside the value that it stands for',
  'anchor-behind-word': 'an anchor or tag after a word',
  'long-key': 'a key that spans several lines',
  'blank-spaces': 'spaces in blank lines at the end of a block with an indentation indicator',
  'in-brackets': 'this word or ":" in brackets',
  'same-keys': 'keys that are the same in JSON',
  'not-of-tag': 'a value that does not match its tag',
  number: 'a number that JSON cannot express',
  merge: '"<<" with anything but mappings',
  'no-text': 'a key that is not a string',
};

const listServers = 'print ipvsadm -Ln or ipvsadm -Sn instead';

/** Words for problems with files, folders and texts, and with bundles, goldens or dumps as sides of a comparison. */
export const fileWords: WordsOf<typeof fileFindings> = {
  'empty-file': ({ isFolder }) =>
    isFolder
      ? 'the folder holds no files named *.yaml, *.yml or *.json, or all are excluded'
      : 'the file holds no objects',
  'not-rendered': byCase('problem', {
    nothing: [
      '--render: no input is a chart or a kustomization',
      'name a folder with a Chart.yaml or a kustomization.yaml',
      'leave out --render',
    ],
    revision: ({ path }) => [
      `--render: ${path} is in a git revision, which is not rendered`,
      'check that revision out with git worktree, and name its folder',
    ],
    'idle-values': ['--render-values: no input is a chart', 'remove it'],
    program: ({ tool, how, said, pipe }) => [
      programWords(tool, how, said),
      `${how === 'no-program' ? 'on a machine that has it' : 'for its full output'}, run: ${pipe}`,
    ],
  }),
  'ignored-files': ({ by, files }) => `left out by ${by}: ${nameSome(files)}`,
  'incomplete-kustomization': ({ lacks, more, ...build }) => {
    const others = more === 0 ? '' : `; ${formatCount(more)} more ${more === 1 ? 'lacks' : 'lack'} files too`;
    return [
      `this kustomization needs ${nameSome(lacks)}, which ${lacks.length === 1 ? 'is' : 'are'} not in the input${others}`,
      ...buildWays(build),
    ];
  },
  kustomized: ({ fields, more, ...build }) => {
    const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
    return [
      `this kustomization changes Services (${fields.join(', ')})${others}; kpc ignores the changes`,
      ...buildWays(build),
    ];
  },
  'left-out': byCase('problem', {
    part: ({ error, files, more }, say) => {
      const others = more === 0 ? '' : ` (and ${count(more, 'more error')})`;
      return `left out${files === 1 ? '' : ` ${count(files, 'file')}`}: ${say(error).text}${others}`;
    },
    all: ({ files, partial, objects }) => {
      const wrong = `the invalid objects of ${count(partial, 'file')}`;
      const again = `${count(objects, 'object')} that the input defines twice`;
      const parts = [
        ...(files > 0 ? [`${count(files, 'file')} with errors`] : []),
        ...(partial > 0 ? [wrong] : []),
        ...(objects > 0 ? [again] : []),
      ];
      return `skipped ${joinWords(parts)} (--skip-invalid)`;
    },

    advice: ({ files, all }) => [
      `${formatCount(files)} of ${formatCount(all)} files ${files === 1 ? 'has' : 'have'} errors`,
      'use --skip-invalid to skip objects with errors',
    ],
  }),
  'skipped-files': ({ files }) =>
    `skipped ${count(files.length, 'file')} without any Kubernetes object: ${nameSome(files)}`,
  'unrendered-template': describeTemplate,
  'unreadable-file': byCase('problem', {
    url: ({ path }) => [
      'kpc reads files, not URLs',
      `download it and name the file, as in "curl -sSLO ${escapeText(path)}"`,
    ],
    pattern: [
      'no such file or folder; kpc does not expand patterns or split lists',
      'name each file by itself',
      'name the folder',
    ],
    'empty-path': ['the path is empty', 'check that the shell variable for it is set'],
    'link-outside': ({ folder }) => [
      `a link to something outside ${folder}`,
      'pass its target with -f as well',
      'leave it out with --exclude PATTERN',
    ],
    'broken-link': ['broken link: its target is missing', 'fix or remove it'],
    missing: 'there is no such file or folder',
    'no-text': ({ what }) => [`the file is ${what}`, 'name YAML or JSON in UTF-8'],
    'no-git': [
      'no such file; to read a git revision, kpc needs git, which is not installed',
      'install git',
      'check the revision out and name its folder',
    ],

    'no-repository': ({ why }) => [
      `there is no such file, and kpc cannot read a revision: ${why === 'no-work-tree' ? 'this folder is not in a git working tree' : gitWords(why)}`,
      'run kpc in the working tree of the repository',
    ],
    'no-revision': ({ revision, near }) => [
      `there is no such file, and ${quote(revision)} is not a revision of this repository`,
      didYouMean(
        near,
        'name a branch, a tag or a commit; in a shallow clone, fetch it first with "git fetch --unshallow"',
      ),
    ],
    'whole-revision': ({ revision }) => [
      `there is no such file; ${quote(revision)} is a revision without a path`,
      `name a file or folder in it, as ${escapeText(revision)}:PATH, or the folder that you are in, as ${escapeText(revision)}:.`,
    ],
    'git-failed': ({ failure }) => [gitWords(failure), 'check the revision out and name its folder'],

    unread: ({ reason }) => unreadWords(reason),
  }),
  'alias-bomb': ({ copies, values }) => [
    `${formatCount(copies)} of the ${formatCount(values)} values read so far come from aliases`,
    'replace the aliases with their values',
  ],
  'bad-json': ({ reason = 'more text after the end of the JSON, with no "---" line between' }) =>
    `not valid JSON: ${reason}`,
  'not-closed': ({ language, sign, line }) => [
    `not valid ${language}: the ${sign} on line ${line} is not closed`,
    `write ${sign === '{' ? '}' : sign === '[' ? ']' : sign} where it should end`,
  ],
  'bad-yaml': (details) => {
    if ('lines' in details)
      return [
        `not valid YAML: ${details.reason}`,
        (/^```/m.test(details.lines) ? 'leave out the lines with ```, which are Markdown' : undefined) ??
          adviseOnOddSpace(details.lines) ??
          'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes',
      ];
    const what =
      'odd' in details
        ? oddYaml[details.odd]
        : 'sign' in details
          ? details.sign === '"'
            ? 'this escape'
            : `text that begins with ${details.sign}`
          : `the character ${nameCharacter(details.character)}`;
    return [
      `not valid YAML: kubectl does not read ${what} as other programs do`,
      'write it in a simpler way, or remove it',
    ];
  },
  'duplicate-key': (repeated) =>
    'times' in repeated
      ? [
          `this key is in the same mapping ${repeated.times === 2 ? 'twice' : `${formatCount(repeated.times)} times`}`,
          'keep one of them',
        ]
      : ['a second object starts here without a "---" line before it', 'add that line'],
  'merge-conflict': mergeConflict,
  'too-deep': [
    'lists and mappings nest too deeply',
    'check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep',
  ],
  'too-long': ({ of, most }) => [
    boundWords({ of, most }),
    of === 'words'
      ? 'split the text at "---" lines, or write it as JSON or as the plain YAML that kubectl prints'
      : 'split it, and remove what no Service needs',
  ],
  'yaml-tab': ['a tab is used for indentation', 'indent with spaces: YAML does not allow tabs'],
  'bad-bundle': ({ path, problem }) => [`${path}: ${bundleFaultWords(problem)}`, 'compile it again with "kpc compile"'],
  reading: byCase('problem', {
    dump: dumpNote,
    'may-hold-more': ({ file }) => `${file} may hold more than kpc could read`,
    'manifests-left-out': ({ error }, say) => `left out the manifests: ${say(error).text}`,
    'follows-release': ({ release }) => `the rules follow the kube-proxy of Kubernetes ${release}`,
    'two-releases': ({ from, fromRelease, to, toRelease }) => [
      `${from} follows Kubernetes ${fromRelease}, ${to} follows ${toRelease}, so a Service can differ even if its manifest does not`,
      `to see why: kpc diff --kubernetes-version ${fromRelease} --to-kubernetes-version ${toRelease} -f MANIFESTS`,
    ],
    'releases-differ': ({ behaviours }) =>
      `the kube-proxies of the two releases differ in ${count(behaviours, 'behaviour')} that kpc knows of`,
    'conntrack-limit': `on a node with many cores kube-proxy before ${behaviourChanges['conntrack-limit'].since} ${behaviourWords['conntrack-limit'].join(', and since then ')}`,
    'empty-side': ({ name, revision, isFolder }) =>
      `${name} is taken as an empty side, because ${isFolder ? 'it holds no manifests' : `${revision === undefined ? 'the working tree' : `revision ${revision}`} does not have it`}`,
    'read-as': ({ name, what }) => `${name}: ${readAsWords(what)}`,
    part: ({ list, skip, shown, all }) => [
      `${shown} of ${all} ${list}${skip > 0 ? `, after the first ${skip}` : ''}`,
      skip + shown < all ? `ask for the next with skip: ${skip + shown}` : undefined,
    ],
    'set-aside': () => 'set aside, because --config names another configuration of kube-proxy',
    'taken-nodes': ({ names }) => `no Node here, so kpc takes the other side's: ${nameSome(names)}`,
    'taken-flags': ({ file, flags }) => `from ${file}: ${flags.join(', ')}`,
    unshown: ({ name, parts, areRules }) =>
      `${name} does not show ${joinWords(parts)}, so ${areRules ? 'the rules that packets meet there are not known' : "kpc assumes that they equal the other side's"}`,
    'skipped-on-both': ({ services }) => [
      `not compared, because they have no cluster IP yet and kube-proxy skips them on both sides: ${nameSome(services)}`,
      'leave out --no-assume',
      'choose cluster IPs with --service-cluster-ip-range',
    ],
    untested: ({ leftOut, listings }) => [
      `left out, because some packets to them have an unknown outcome: ${nameSome(leftOut)}`,
      ...(listings.length > 0 ? [`add the output of ${joinWords(listings, 'and')}`] : []),
      'see why with "kpc trace --all SERVICE"',
    ],
    'taken-as-subject': ({ word }) => [
      `${quotePrintable(word)} is taken as the name to describe, not as a file`,
      `write ${quotePrintable(`./${word}`)} to read it`,
    ],
    'misnamed-file': ({ file }) => [`${file} is not read`, 'rename it to kpc.yaml'],
  }),
  'dump-reading': byCase('problem', {
    elsewhere: ({ output, command }) =>
      `left out ${output}: ${quotePrintable(command)} does not show what this node's kernel holds`,
    'legacy-tables': ['the input lacks the rules of iptables-legacy', 'add the output of iptables-legacy-save'],
    filtered: ({ command, chain }) => [
      `this is only part of the output of ${command}: ${chain === undefined ? 'lines such as ":FORWARD ACCEPT"' : `rules of chain ${chain}`} are missing`,
      `add all of the output of ${command}`,
    ],
    'no-interfaces': ({ command }) => [
      `${command} without -v shows no interfaces, so its rules are not compared, and kpc trace uses only part of them`,
      'add the output of iptables-save, or the list with -v',
    ],
    'no-table': ({ tables }) =>
      `no line such as *nat names the table of these rules: kpc assumes ${tables.join(' and ')}`,
    'stray-lines': ({ lines }) => `ignored ${count(lines, 'unrecognised line')}`,
    'unread-rules': ({ table, chain, rule, rules, lacksPorts }) => [
      `${lacksPorts ? 'the listing lacks the ports' : 'kpc cannot read the matches'} of ${count(rules, "of kube-proxy's rules", "of kube-proxy's rules")}, so it is not known which packets match ${table} ${chain} rule ${rule}`,
      lacksPorts
        ? "iptables up to 1.8.7 cannot print them: add the output of nft list ruleset, or of iptables-save in kube-proxy's image"
        : 'add the output as iptables-save printed it',
    ],
  }),
  'nodes-folder': ({ path, example, of }) => [
    `${path} holds the ${of} of several nodes`,
    `name the folder of one node, such as ${example}`,
    of === 'bundles' ? 'name the node with --node' : undefined,
  ],
  'no-manifests': ({ path, what, beside }) =>
    beside === undefined
      ? [
          `${path} is a ${what}, not manifests, so it cannot be compiled`,
          `look at it with kpc describe -f ${shellWord(path)}`,
          'compare it with kpc diff',
        ]
      : [
          `${path} is a ${what}, which cannot be combined with ${beside}`,
          `look at the ${what} by itself`,
          'compare the two with kpc diff',
        ],
  'nothing-to-check': byCase('problem', {
    missing: ({ folder }) => [
      `--check ${folder}: there is no such folder`,
      `write it first with -o ${folder}, or with --golden for git`,
    ],
    'no-bundle': ({ folder }) => [
      `--check ${folder}: kpc compile wrote no bundle and no golden there`,
      'name another folder',
      'write one with -o or --golden',
    ],
    file: ({ folder }) => [`--check ${folder}: this is a file, not a folder`, 'name the folder of a bundle or golden'],
    revision: ({ folder }) => [
      `--check ${folder}: in a git revision, kpc compares one node at a time`,
      'name the folder of one node in it, and the node with --node',
    ],
    'one-node': ({ folder }) => [
      `--check ${folder}: this is the bundle of one node`,
      'name the folder of all nodes, or one node with --node',
    ],
    fleet: ({ folder, example }) => [
      `--check ${folder}: this folder holds the bundles of many nodes`,
      'use --all-nodes',
      `name one of them, such as ${example}`,
    ],
  }),
  'second-listing': ({ output, ...other }) => [
    `skipped ${output} from another node or time: ${'from' in other ? `it is from ${other.from}` : `it differs in ${nameSome(other.differences)}`}`,
    'use one file for each node',
  ],
  unreadable: ({ path, reason }) => `${path} cannot be read: ${unreadWords(reason)}`,
  'unread-file': (details) => {
    const { expected, reason, isCutOff, isEmpty, isNoListing } = details;
    if (isNoListing)
      return [
        isEmpty ? 'the file holds nothing: the command that wrote it may have failed' : 'not a listing that kpc reads',
        'print iptables-save, nft list ruleset or a similar tool, or leave it out',
      ];
    if (isCutOff) return [`the output of ${expected} is cut off, and the rest is unknown`, 'print it again'];
    if (isEmpty) return [`the file is empty, so the output of ${expected} counts as missing`, 'print it as root'];
    const what = expected === undefined ? 'not text' : `not the output of ${expected}`;
    return `skipped: ${what}${reason === undefined ? '' : `: ${unreadWords(reason)}`}`;
  },
  'unread-line': ({ reason, of, more }) =>
    `skipped: ${lineFaultWords(reason, of)}${more === 0 ? '' : ` (and ${count(more, 'more line')})`}`,
  'unread-output': byCase('problem', {
    'ipvsadm --stats': `ipvsadm with other columns leaves out schedulers, weights or how real servers are reached: ${listServers}`,
    'conntrack -E': 'conntrack -E lists events, not connections: print conntrack -L instead',
    'route -n': 'route -n leaves out tables and sources: print ip route instead',
    'ipvsadm -Lc': `ipvsadm -Lc lists connections, not virtual servers: ${listServers}`,
    ifconfig: 'ifconfig leaves out addresses: print ip addr instead',
    'ip link': 'ip link shows no addresses: print ip addr instead',
    'ipset list -o xml': 'ipset list -o xml is XML, which kpc does not read: print ipset save instead',
    'ipset list -t': 'ipset list -t shows no members: print ipset save instead',
    'nft -j': 'nft -j is JSON, which kpc does not read: print nft list ruleset instead',
    'nft -S': 'nft -S shows names of ports: print nft list ruleset without -S instead',
    'nft -t': 'nft -t shows no elements: print nft list ruleset without -t instead',
    'services.json': "one Service's file of a golden is not a node's: name the folder of the golden instead",
    nft: 'a part of nft list ruleset lacks the line that names its table: copy it from a line such as "table ip kube-proxy {" on, to its last brace',
    'iptables-as-nft': 'nft list ruleset shows the rules of iptables mode in other words: print iptables-save instead',
    dormant: ({ table }) =>
      `nft list ruleset shows that table ${table} is dormant: no packet comes to it, and none of its Services works`,
    'hidden-tables': ({ command, tables }) =>
      `${command} leaves out the ${tables.length === 1 ? 'table' : 'tables'} ${joinWords(tables)}: others put there what only nft reads`,
  }),
};
