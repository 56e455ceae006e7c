import type { CheckArguments, NftFeature, RemarkArguments } from '../../base/findings/node-checks.ts';
import { count, joinWords } from '../../base/printable.ts';
import { familyNames } from '../../kernel/address.ts';
import { decisionWords } from '../changes.ts';
import { forwardingSysctls } from '../../kernel/sysctls-and-modules.ts';
import { modeFacts, proxyModes } from '../../kube-proxy/modes.ts';
import { newSetsWords, readsAllNft } from '../../kube-proxy/nft-table.ts';
import {
  adviseUnseen,
  describeCause,
  describeNetwork,
  firstLine,
  nameObject,
  nameProcess,
  rightsAdvice,
  stopProcess,
  unseenWords,
  whyUnread,
} from './apply-parts.ts';
import { byCase, type Wording, nameSome } from './rows.ts';

/** What does not work if an optional tool is missing. */
const losses: Readonly<Record<string, string>> = {
  conntrack: ' (without it, UDP clients keep sending to a removed endpoint until they pause)',
  getfacl: ' (without it, kpc-apply refuses a bundle, key or state folder that its group may write to)',
  modprobe: ' (without it, kernel modules cannot be loaded)',
};

const noReason = 'nft gives no reason';

const load = (names: readonly string[]) => `modprobe -a ${names.join(' ')}`;

/** What kube-proxy's rules use each nftables feature for. */
const featureNames: { readonly [F in NftFeature]: string } = {
  dnat: 'send packets to endpoints (dnat)',
  masquerade: 'masquerade',
  numgen: 'choose an endpoint at random (numgen)',
  fib: 'recognise local addresses (fib)',
  reject: 'refuse packets (reject)',
  ct: 'tell new connections from others (ct)',
};

/** What happens if a sysctl is 0, and what to do about it. */
const zeros = {
  'no-forwarding': (name: string) => {
    const family = name === forwardingSysctls.ipv6 ? 'ipv6' : 'ipv4';
    const modes = proxyModes.filter((mode) => modeFacts[mode].sysctls.includes(name));
    const only = modes.map((mode) => modeFacts[mode].title);
    return [
      `the node forwards no ${familyNames[family]} packets to endpoints, and kube-proxy ${only.length === 0 ? 'does not set it' : `sets it only in ${joinWords(only)}`}`,
      `run sysctl -w ${name}=1, and keep it in /etc/sysctl.d`,
    ];
  },
  bridge: () => [
    'pods on one bridge might not reach each other through a Service',
    'set it to 1 if pods are on a Linux bridge',
  ],
  arp: () => [
    'the node answers ARP for every address on kube-ipvs0, even for load balancer addresses',
    'if MetalLB or another program announces these addresses, compile with --ipvs-strict-arp',
  ],
} as const;

type NodeCheckWords<Codes> = { readonly [Code in keyof Codes]: Wording<Codes[Code]> };

export const checkWords: NodeCheckWords<CheckArguments> = {
  rights: byCase('found', {
    enough: 'allowed to change the network (CAP_NET_ADMIN)',
    'too-few': ['not allowed to change the network: /proc/self/status shows no CAP_NET_ADMIN', rightsAdvice],
  }),
  tools: byCase('found', {
    works: ({ name, details }) => `${name}: ${details}`,
    'writes-new-sets': ({ name, details }) => [
      `${name}: ${details}; ${newSetsWords}`,
      `if a kube-proxy runs here in nftables mode, run ${readsAllNft} or newer`,
    ],
    missing: ({ name, family }) => [`${name} is missing${losses[name] ?? ''}`, `install the package ${family}`],
    broken: ({ name, asked, said, because }) => [
      `${name} does not work: ${said || 'it printed nothing'}${losses[name] ?? ''}`,
      because === 'rights'
        ? rightsAdvice
        : because === 'no-ipvs'
          ? 'nothing is wrong with ipvsadm: the kernel lacks IPVS (see ip_vs)'
          : `see what "${name} ${asked}" says`,
    ],
    old: ({ name, family, version, least }) => [
      `${name} is ${version}, but at least ${least} is needed`,
      `upgrade the package ${family}`,
    ],
    unreadable: ({ failure, isVariant }, say) => {
      const { text, help } = say(failure);
      const variant =
        'boot a kernel that has nf_tables, or switch to the legacy variant (update-alternatives --config iptables)';
      return [firstLine(text), isVariant ? variant : help];
    },
    'no-room': ({ most, bundle, others }) => [
      `listings of the node would exceed the ${most} MB that kpc-apply reads: ${bundle} MB for this bundle, and ${others} MB for other programs`,
      'see what makes so many objects, and remove what no program needs',
    ],
  }),
  addresses: byCase('found', {
    all: 'this node has the addresses of the bundle',
    missing: ({ addresses }) => [
      `the bundle was compiled for a node with ${addresses.join(', ')}, which this node does not have`,
      'check that this is the bundle of this node; if it is, compile it again with its output of ip -j addr in --host-addresses',
    ],
  }),
  modules: byCase('found', {
    present: ({ names }) => `${joinWords(names)} ${names.length === 1 ? 'is' : 'are'} in the kernel`,
    loadable: ({ names }) => `${joinWords(names)} can be loaded`,
    'not-allowed': ({ names }) => [
      `${joinWords(names)} ${names.length === 1 ? 'is' : 'are'} not loaded, and cannot be loaded from here: CAP_SYS_MODULE is missing`,
      `run on the host: ${load(names)}`,
    ],
    unknown: ({ names, loadsModules }) => {
      const [verb, it] = names.length === 1 ? ['is', 'it'] : ['are', 'they'];
      const advice = `if ${it} ${verb} not built in, run on the host: ${load(names)}; after a kernel upgrade, reboot`;
      return [
        `${joinWords(names)} ${verb} not visible, and the kernel's list of modules is missing here: ${it} may be built in`,
        loadsModules ? advice : undefined,
      ];
    },
    missing: ({ names, loadsModules }) => {
      const [verb, it] = names.length === 1 ? ['is', 'it'] : ['are', 'them'];
      return [
        `${joinWords(names)} ${verb} missing: this kernel neither has ${it} nor can load ${it}`,
        loadsModules
          ? `install the modules package of this kernel, or boot a kernel that has ${it}`
          : `boot a kernel that has ${it}: this one loads no modules`,
      ];
    },
  }),
  sysctls: byCase('found', {
    absent: ({ name }) => [
      `${name} does not exist here`,
      'set it on the host: a container sees only the sysctls of its own network namespace',
    ],
    right: ({ name, value }) => `${name} is ${value}`,
    settable: ({ name, value, wanted }) => `${name} is ${value}, and can be set to ${wanted}`,
    fixed: ({ name, value, wanted }) => [
      `${name} is ${value}, and cannot be set to ${wanted} from here`,
      `set it on the host, as root: sysctl -w ${name}=${wanted}`,
    ],
    zero: ({ name, effect }) => {
      const [text, advice] = zeros[effect](name);
      return [`${name} is 0: ${text}`, advice];
    },
  }),
  iptables: byCase('found', {
    one: ({ variant, other }) =>
      `iptables is the ${variant} variant; the ${other} variant holds no chains of kube-proxy`,
    both: ({ variant, other, chains, by }) => [
      `iptables is the ${variant} variant, but the ${other} variant also holds ${count(chains, 'chain')} of ${by}, which packets still reach`,
      by === 'kpc-apply'
        ? 'apply again: kpc-apply moves its rules to the variant in use'
        : 'take them over with apply --adopt, or remove them with cleanup --adopt',
    ],
    unknown: ({ variant, other, failure }, say) => [
      `iptables is the ${variant} variant; the content of the ${other} variant is unknown: ${firstLine(say(failure).text)}`,
      `install the ${other} variant's tools to see it`,
    ],
    'no-tool': 'iptables-save is missing, so kpc-apply cannot check the variant of iptables',
  }),
  kernel: byCase('found', {
    new: ({ release }) => `kernel ${release}`,
    old: ({ release, least }) => [
      `the kernel is ${release}, but kube-proxy requires at least ${least} in this mode`,
      'boot a newer kernel, or compile for iptables mode',
    ],
    unknown: '/proc does not show the version of the kernel, so kpc-apply cannot check it',
  }),
  nftables: byCase('found', {
    whole: 'the kernel supports everything that the rules need',
    'no-tool': 'nft is missing, so kpc-apply cannot check whether the kernel supports the rules',
    'not-allowed': ({ said }) => [`nft is not allowed to change anything here: ${said}`, rightsAdvice],
    broken: ({ said }) => [
      `nft cannot work with this kernel: ${said || noReason}`,
      'see what "nft list tables" says; boot a kernel that has nf_tables',
    ],
    lacks: ({ feature, family, said, modules, mayChange }) => [
      `this kernel cannot ${featureNames[feature]} for ${family}: ${said || noReason}`,
      mayChange
        ? `load its modules on the host: modprobe -a ${modules}; if that fails, boot a kernel that has these modules`
        : rightsAdvice,
    ],
  }),
  'kube-proxy': byCase('found', {
    none: 'kube-proxy is not running in this network namespace',
    running: ({ process }) => [
      `${nameProcess(process)}: it would undo what kpc-apply does`,
      `${stopProcess(process)} first, then take over what it leaves with apply --adopt`,
    ],
    unknown: ({ unseen, mustSee }) => [
      `it is unknown whether a kube-proxy runs in this network namespace: ${unseenWords[unseen][0]}`,
      mustSee
        ? adviseUnseen(unseen, 'no kube-proxy')
        : `${unseenWords[unseen][1]}; --adopt needs to know whether a kube-proxy runs`,
    ],
  }),
  endpoints: ({ assumed }) => [
    `the bundle sends connections to ${assumed === 1 ? 'an endpoint' : `${assumed} endpoints`} that kpc assumed (--assume-endpoints), at addresses that no Pod has`,
    'compile it from the objects of the cluster: kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml',
  ],
  routes: ({ family }) => [
    `the node has no default route for ${familyNames[family]}: its own connections to cluster IPs fail, unless another route covers them`,
    'add a default route, or one to the range of the cluster IPs',
  ],
  state: byCase('found', {
    whole: ({ folder, isEmpty }) =>
      `${folder}: ${isEmpty ? 'kpc-apply has made nothing here since the node booted' : 'the record is intact'}`,
    unfinished: ({ folder }) => [
      `${folder}: an apply is running, or did not finish`,
      'if none is running, run "kpc-apply rollback", or apply again',
    ],
    elsewhere: (network) => [describeNetwork(network), 'use another --state-dir for each network'],
    unreadable: ({ failure }, say) => {
      const { text, help } = say(failure);
      return [text, help];
    },
  }),
};

export const remarkWords: NodeCheckWords<RemarkArguments> = {
  'one-standby': ({ lacks, cause }, say) =>
    `${lacks === 'process' ? 'only a' : 'no'} systemd timer would roll back if this process were killed: ${describeCause(cause, say)}`,
  'balancer-not-reloaded': ({ path }) =>
    `the balancer uses ${path} only once it has reloaded: reload it, or name the command for that with --balancer-reload`,
  'open-journal': ({ path, cause }, say) =>
    `everything is rolled back, but ${path} cannot be closed: ${describeCause(cause, say)}; the next apply or rollback closes it`,
  'rules-unseen': ({ failure }, say) =>
    `${firstLine(whyUnread(failure, say))}: it is unknown whether rules that a kube-proxy left still match connections`,
  'rules-left': ({ objects }) =>
    `these objects still match connections: ${nameSome(objects.map(nameObject))}; apply --adopt takes them over`,
  'dump-lacks': ({ failure, isForeign }, say) =>
    `${whyUnread(failure, say)}, so the dump lacks what it lists${isForeign ? ' of other programs' : ''}`,
  'flows-of-gone-services':
    'UDP clients may keep sending to Services that are gone: no record names the Services before this apply',
  'flows-of-gone-endpoints': ({ cause }, say) =>
    `UDP clients may keep sending to removed endpoints for now: ${describeCause(cause, say)}`,
  'lower-limit': ({ name, from, to, why }) =>
    `${name} goes down from ${from} to ${to}, the value that kube-proxy sets${decisionWords(why)}; to leave it as it is, compile with --conntrack-max-per-core 0`,
  'left-sysctls': ({ mode, names }) =>
    `sysctls that only ${modeFacts[mode].title} needs stay as they are: ${names.join(', ')}`,
  'affinity-lost': ({ from, to }) =>
    `session affinity: clients lose their endpoints, because ${modeFacts[to].title} cannot read what ${modeFacts[from].title} has learned`,
  'check-failed': ({ check }, say) => {
    const { text, help } = say(check);
    return `${text}; ${help}`;
  },
  'cut-output': ({ command, most, of }) =>
    `"${command}" prints more than ${most / 2 ** 20} MB on its ${of}: the rest is left out`,
  'other-network': describeNetwork,
  'read-pack': ({ path, digest, signer, isChecked }) =>
    `${path}: digest ${digest}, ${signer === undefined ? 'not signed' : `signed by key ${signer}${isChecked ? '' : ', which was not checked (no --trust)'}`}`,
  'good-bundle-again': ({ path }) => `${path} is a good bundle again`,
  'on-last-good-bundle': 'the node stays on the last good bundle until there is a new good one',
  'no-good-bundle': 'no good bundle is known: the node is left as it is until there is one',
  'bundle-not-kept': ({ cause }, say) =>
    `kpc-apply cannot save the bundle for the next watch: ${describeCause(cause, say)}`,
  'serial-not-kept': ({ path, cause }, say) =>
    `kpc-apply cannot save the serial of ${path}: ${describeCause(cause, say)}`,
  'port-not-opened': ({ use, port, of, family, cause }, say) =>
    `cannot open ${use} port ${port} of ${of}${family ? ` (${family})` : ''}: ${describeCause(cause, say)}`,
  'metrics-not-written': ({ cause }, say) => `cannot write the metrics: ${describeCause(cause, say)}`,
};
