import { modeFacts, proxyModeNames, type ProxyMode } from '../../kube-proxy/modes.ts';
import { unreadWords } from './unread.ts';
import { joinWords, printable, quote, quotePrintable, shellWord } from '../../base/printable.ts';
import type { callFindings, IdleBeside, IdleFlags } from '../../base/findings/calls.ts';
import { lastAnnounced } from '../../kube-proxy/announced.ts';
import { headlessLabel, proxyNameLabel, type SkipReason } from '../../kube-proxy/skipped.ts';
import { firstRelease, releases, releasesOfMode } from '../../kube-proxy/releases.ts';
import { bundleFaultWords, describeFolderProblem } from './bundle.ts';
import { byCase, didYouMean, listCodes, nameSome, type Words, type WordsOf } from './rows.ts';

const missing = {
  manifests: 'name manifests, or - for stdin',
  any: 'name manifests, a bundle or a dump, or - for stdin',
  cluster: 'name the manifests of the cluster, or - for stdin',
  'both-sides': 'add the manifests that both sides are compiled from, with -f',
} as const;

const missingOfPacket = {
  sender: 'add --from, such as --from pod, or --from external for a client outside the cluster',
  destination: 'add --to, such as --to svc/NAME, or ask for a table with --all SERVICE',
  packet: 'write --from SOURCE --to DESTINATION, or --all SERVICE',
} as const;

const unknownModeWays = {
  release: (mode: ProxyMode) =>
    `upgrade with the change: --to ${mode}, and --to-kubernetes-version with a release of ${releasesOfMode(mode)}`,
  mode: () => 'name the mode after the change with --to',
  'present-mode': () => 'name the present mode with --from',
} as const;

const leaveOut = 'leave it out';
const oneOfTwo = 'leave out one of the two';
const asTable = 'write --from and --to instead of --all';

/** What the other flag does, so that this flag has no effect, followed by advice. */
const idleBeside: Readonly<Record<IdleBeside, readonly [does: string, ...ways: readonly string[]]>> = {
  'whole-lists': ['prints whole lists', leaveOut],
  'always-rules': ['always shows them', leaveOut],
  table: ['prints a table, not the trace of one packet', asTable],
  'each-protocol': ['traces each port with its own protocol', asTable],
  'own-packets': ["sends the node's own packets, which arrive by no interface", 'leave it out', 'name another sender'],
  'all-nodes': ['names all nodes', oneOfTwo],
  'mode-twice': ['also names the mode', oneOfTwo],
  'prints-tests': ['prints tests, not results', leaveOut],
  'prints-file': ['prints a file as it is', oneOfTwo],
};

function idleWords({ flags, because }: IdleFlags): Words {
  const names = flags.join(', ');
  switch (because.kind) {
    case 'compiled-already':
      return `${names}: only for manifests, but ${because.path} is a ${because.of}`;
    case 'both-compiled-already':
      return `${names}: only for manifests, but neither ${because.paths.join(' nor ')} holds manifests`;
    case 'one-node': {
      const { path, of } = because;
      if (path === undefined) return `${names}: only for manifests, but a bundle or dump belongs to one node`;
      return `${names}: only for manifests, but ${path} is a ${of} of one node`;
    }
    case 'own-node':
      return [`${names}: ${because.path} is a dump, which has its own node`, leaveOut];
    case 'other-node':
      return `${names} ${because.node}: ${because.path} is a bundle of ${because.of || 'no node'}`;
    case 'beside': {
      const [does, ...ways] = idleBeside[because.why];
      return [`${names}: ${because.beside} ${does}`, ...ways];
    }
    case 'own-addresses':
      return `${names}: a bundle has its own addresses`;
    case 'own-settings':
      return `${names}: each side already has its own value`;
    case 'no-side':
      return `${names}: only for a side that is a mode, a release or a configuration, but both sides are files`;
    case 'no-names':
      return [`${names}: neither the command line nor the input names an object`, leaveOut];
    case 'no-dns-names':
      return `${names}: a dump shows no DNS names`;
    case 'table-of-addresses':
      return `${names}: the table shows no DNS names; name a Service to see them`;
    case 'table':
      return `${names}: only for a single Service; name one`;
    case 'rules-of-dump':
      return `${names}: a dump consists of rules already; name one of its chains or sets`;
    case 'always':
      return `${names}: JSON always includes them`;
  }
}

const argumentWords = {
  object: 'an object',
  string: 'a string',
  filled: 'set: leave an empty option out',
  text: '{ name, text } with two strings',
  texts: 'a Map, an object or an array of texts',
  snapshot: 'a snapshot: open and compile make them',
  side: 'a mode, a release, a configuration or a snapshot',
} as const;

const notToVerify = {
  missing: 'there is no such folder or file',
  golden: 'it is a golden (for git), not a bundle: write a bundle with "kpc compile -o"',
  other: 'it is neither a folder nor a pack that "kpc bundle pack" wrote',
} as const;

/** The flags to use instead if kpc is not allowed to read these objects of a cluster. */
const standIns: ReadonlyMap<string, string> = new Map([
  ['kube-proxy', "name kube-proxy's mode with --proxy-mode, or give its configuration with --config"],
  ['serviceCidrs', 'name the networks of cluster IPs with --service-cluster-ip-range'],
]);

const rightToList = 'ask for the right to list these in all namespaces, or give the output of kubectl get with -f';

/** The words after a Service's name that say why kube-proxy programs nothing for the Service. */
export const skippedBecause: { readonly [R in SkipReason]: string } = {
  headless: 'is headless (clusterIP: None)',
  'external-name': 'is of type ExternalName',
  'other-proxy': `has the label ${proxyNameLabel}, which leaves it to another proxy`,
  'headless-label': `has the label ${headlessLabel}, by which kube-proxy of this release ignores it`,
  'no-cluster-ip': 'has no cluster IP yet',
};

/** Words for calls that kpc cannot answer with the given input. */
export const callWords: WordsOf<typeof callFindings> = {
  'bad-call': byCase('problem', {
    'no-input': ({ takes }) => ['no input is named', missing[takes]],
    'no-manifests': ({ what }) => [
      `no manifests are named, and ${quotePrintable(what)} is no file or folder`,
      `to look for it in manifests, write "kpc describe ${shellWord(what)} -f FILE", with - for stdin`,
    ],
    'no-tests': ['no tests are named', 'name a file of expectations', 'write one with "kpc test --init"'],
    'nothing-to-test': ({
      skipped,
      listings: [first = 'kubectl get services,endpointslices,nodes -A -o yaml', ...more],
    }) =>
      skipped.length > 0
        ? [
            `nothing to test: kube-proxy programs no Service of the input (${nameSome(skipped.map(({ service, why }) => `${service} ${skippedBecause[why]}`))})`,
            'name manifests with Services that have a cluster IP',
          ]
        : [
            "nothing to test: the input determines no packet's outcome",
            `add the output of ${joinWords([first, ...more], 'and')}`,
          ],
    'no-packet': ({ lacks }) => [`no ${lacks} is named`, missingOfPacket[lacks]],
    'no-pack': ['no pack is named', 'name the file to write with -o, such as -o node.tgz'],
    'no-folder': ['the output for several nodes needs a folder', 'name one with -o, --golden or --check'],
    'same-name': ({ what, name }) => [`two of ${what} are named ${name}`, 'give each text its own name'],
    'no-shared-node': ({ from, to }) => [
      `${from} and ${to} have no Node in common`,
      'compare one node: leave out --all-nodes',
    ],
    'no-node': ['the input holds no Node', 'add the output of kubectl get nodes -o yaml'],
    'no-side': ({ first }) => [
      `diff needs ${first === undefined ? 'two sides' : `a second side to compare with ${first}`}`,
      'kpc diff OLD NEW, such as "kpc diff main:services services"',
    ],

    'several-subjects': ({ words }) => [
      `describe takes one subject, not ${words.map((word) => quotePrintable(word)).join(' and ')}`,
      'name one, and the input with -f',
    ],
    'settings-as-files': ({ from, to, settings }) => [
      `diff compares files, but ${joinWords(settings, 'and')} ${settings.length > 1 ? 'are modes or releases' : 'is a mode or release'}`,
      `compare what they do to packets with "kpc equivalence ${from} ${to} -f MANIFESTS"`,
    ],
    'unknown-side': ({ names, meant }) => [
      `no mode, release, file or folder is called ${names.map((name) => quotePrintable(name)).join(' and ')}`,
      didYouMean(meant, `name a mode (${proxyModeNames}), a release such as 1.36, a file or a folder`),
    ],
    'unknown-code': ({ name, meant }) => [`no message has the code ${printable(name)}`, didYouMean(meant, listCodes)],
    'no-node-name': ({ name }) => `${quotePrintable(name)} is not the name of a node`,
    'no-dump': ({ path }) => [
      `${path} is not a dump`,
      'name a file or folder with the output of iptables-save, ip6tables-save, ipset save, ipvsadm -Sn and ip -j addr on a node, as kpc-apply dump writes it',
    ],
    'second-input': ({ path }) => [
      '--to-kubernetes-version compares one set of manifests under two releases',
      `leave out ${path}`,
    ],
    'nothing-in-common': ({ from, to }) =>
      `${from} or ${to} does not show how packets reach the endpoints of Services, so kpc cannot tell whether they differ`,
    'nothing-known': ({ reasons }) => [
      'nothing could be compared: no packet to a Service has a known outcome on both sides',
      reasons.length > 1 ? `for example, ${reasons[0]}` : reasons[0],
    ],
    'no-services': ({ from, to, compared, notCompared }) => [
      compared === 'packets'
        ? `no packet could be compared: kube-proxy programs no Service of the input in the IP families that were compared${notCompared.length === 0 ? '' : `; not compared: ${joinWords(notCompared)}`}`
        : from === to
          ? `${from} holds no Service that could be compared`
          : `neither ${from} nor ${to} holds a Service that could be compared`,
      `name files or folders with Services${compared === 'packets' ? ' that have a cluster IP' : ''}`,
    ],
    'empty-shard': ({ shard }) => [
      `no node in the input is in shard ${shard}, so --check compared nothing`,
      'use fewer shards',
      'check all nodes at once',
    ],
    'stdin-of-two-sides': 'only one side can be read from stdin',
    'stdin-of-cluster': ['--cluster replaces standard input', 'leave out the -'],
    'stdin-kept': ['init needs files, because kpc.yaml names them', 'name a file or folder'],
    'render-kept': [
      'kpc.yaml cannot hold --render, which runs other programs',
      'commit the output of helm template or kubectl kustomize, and name that file',
    ],

    'idle-flag': idleWords,
    'flag-alone': ({ flag, without }) => [`${flag}: only with ${without}`, `add ${without}, or leave out ${flag}`],
    'flag-of-other-action': ({ action, flags }) => `kpc bundle ${action} has no ${flags.join(' and no ')}`,
    'output-of-check': ({ output }) => [`--output ${output} is for --check`, 'name a folder with --check'],
    'jobs-of-binary': ['--jobs needs kpc to run under Node.js', 'run this binary several times with --shard'],
    'no-option': ({ name, near }) => [`no option "${name}"`, didYouMean(near)],
    'not-one-of': ({ option, values }) => `${option} is not one of ${values.join(', ')}`,
    'wrong-argument': ({ what, is }) => `${what} is not ${argumentWords[is]}`,
    value: ({ reason }) => reason,
    usage: ({ reason, help }) => [reason, help],

    'no-release': ({ release }) => [
      `--to-kubernetes-version: kpc knows no release ${quote(release)}`,
      `name ${releases[0]}, or one from ${firstRelease} to 1.${lastAnnounced}`,
    ],
    'unknown-mode': ({ mode, release, by }) => [
      `Kubernetes ${release} has no ${modeFacts[mode].title} that kpc follows`,
      unknownModeWays[by](mode),
    ],
    'other-mode': ({ mode, to }) => [
      `--to-config is for ${mode} mode, but the change is to ${to} mode`,
      `write mode: ${to} there, or leave out --to`,
    ],
    'same-mode': ({ mode, isNamed }) => [
      isNamed ? `--from and --to are both ${mode}` : `kube-proxy is in ${mode} mode already`,
      isNamed ? 'name two modes with --from and --to' : 'name another mode with --to',
    ],

    'no-such-file': ({ file, mode, families = [] }) =>
      `there is no ${file} in mode ${mode}${families.length === 0 ? '' : ` for ${families.join(' and ')}`}`,
    'replaces-real': ({ folder }) => [
      `--assume would replace ${folder}, a bundle without assumptions`,
      'name another folder with -o',
      'remove that bundle first',
    ],
    folder: ({ wrong }) => describeFolderProblem(wrong),
    'no-bundle': ({ folder, problems }) => [
      `${folder} is not a bundle: ${problems.map(bundleFaultWords).join('; ')}`,
      'name the folder that "kpc compile -o" wrote',
    ],
    'not-a-folder': ({ path }) => `${path} is not a folder`,
    'neither-bundle-nor-pack': ({ path, is }) => `${path}: ${notToVerify[is]}`,
    'no-key': ({ flag, file, reason }) => [
      `${flag} ${file}: ${unreadWords(reason)}`,
      flag === '--sign' ? 'make one: openssl genpkey -algorithm ed25519 -out kpc.key' : undefined,
    ],
    'too-large-to-pack': ({ folder }) => `${folder} is too large to pack: copy the folder instead`,
    unreadable: ({ path, reason }) => `cannot read ${path}: ${unreadWords(reason)}`,
    system: ({ reason }) => reason,
    'is-there': ({ paths }) => [
      `${joinWords(paths)} ${paths.length === 1 ? 'exists' : 'exist'} already`,
      'edit or remove it',
    ],
    'leads-away': ({ path, to }) =>
      to === 'git'
        ? [`${path} leads into .git`, 'name another folder']
        : [
            `${path} leads out of this repository`,
            'name a file or folder inside the repository, by a path without symbolic links',
          ],
    'unsafe-name': ({ path }) => [
      `a workflow cannot hold the name ${quotePrintable(path)}`,
      'rename it',
      'leave out --github',
    ],

    'program-failed': ({ call, tool, said, how, limit }) =>
      how === 'no-program'
        ? [
            `there is no ${tool} on the PATH`,
            'on a machine that has it, run: kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml | kpc describe -',
          ]
        : [
            {
              'too-large': `"${call}" prints more than kpc reads`,
              'too-slow': `"${call}" has not ended within ${limit} s`,
              failed: `"${call}" failed${said === '' ? '' : `: ${said}`}`,
            }[how],
            'run the command by hand, save its output to a file, and name that file',
          ],
  }),
  'unread-cluster': ({ kinds, lists, isNeeded }) => {
    const ways = lists.flatMap((list) => standIns.get(list) ?? []);
    const right = isNeeded && ways.length < lists.length ? [rightToList] : [];
    const end = isNeeded ? '' : ', so answers that depend on them are unknown';
    const help = [...right, ...ways].join('; ');
    return [`kpc could not read ${joinWords(kinds)} of this cluster${end}`, help === '' ? undefined : help];
  },
};
