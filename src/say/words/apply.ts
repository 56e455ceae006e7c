import type { FailureFault, applyFindings } from '../../base/findings/apply.ts';
import { unreadWords } from './unread.ts';
import type { CheckFault, Remark } from '../../base/findings/node-checks.ts';
import { printable } from '../../base/printable.ts';
import { version } from '../../base/version.ts';
import {
  adviseOnStates,
  adviseUnseen,
  describeCause,
  describeEnd,
  describeLastCommand,
  describeOutputFault,
  exposureWords,
  listRest,
  nameObject,
  nameProcess,
  rightsAdvice,
  stopProcess,
  unseenWords,
} from './apply-parts.ts';
import { bundleFaultWords, describeFolderProblem } from './bundle.ts';
import { checkWords, remarkWords } from './node-checks.ts';
import { byCase, sayIn, type Said, type WordsOf, nameSome } from './rows.ts';

const trusted = { bundle: 'the bundle', keys: 'the keys in' } as const;

const notFound = 'name a folder that "kpc compile -o" wrote, or a file that "kpc bundle pack" wrote';

const notApplied = (path: string, problems: readonly string[]) =>
  `${path} is not a bundle that can be applied:\n  ${problems.map(printable).join('\n  ')}`;

/** What to do about a damaged file in the state folder. */
const repairs = {
  record: 'remove the record, then run apply or cleanup with --adopt, which takes over what the record listed',
  state: 'remove the file: that earlier state is lost, so apply the bundle that you want instead',
  'last-command':
    'remove the file; kpc-apply then no longer knows the last command, so run "kpc-apply rollback --dry-run" before you roll back',
  unconfirmed: 'remove the file and apply again: an apply that is not confirmed in time is rolled back',
  serial: 'remove the file; after that, older bundles are accepted too',
  copy: 'remove it',
} as const;

const lacking = { rights: 'run it as root', space: 'free some space there, and try again' } as const;

/** What to do if kpc-apply cannot take its lock. */
const lockAdvice = {
  run: () => 'run it as root, and make sure that /run is writable',
  'state-folder': () => 'free some space and make the folder writable, or choose another folder with --state-dir',
  file: (folder: string) => `remove the file that blocks ${folder} or a folder above it, then try again`,
} as const;

const tooLong = (what: string, { most, of }: { readonly most: number; readonly of: 'node' | 'listing' }) =>
  [
    `${what} is too long: kpc-apply reads at most ${most / 2 ** 20} MB of ${of === 'node' ? 'a node' : 'it'}`,
    'see what makes it so long, and remove what no program needs',
  ] as const;

const awaited = 'run the command by hand to see what it waits for';

/** What to do if kpc-apply cannot mark a network namespace. */
const noMark = {
  rights: rightsAdvice,
  names:
    'lo has as many alternative names as the kernel allows: list them with "ip link show lo", and remove unneeded ones with "ip link property del dev lo altname NAME"',
  age: "this needs Linux 5.5 and iproute2 5.4; with older ones, run kpc-apply in the node's own network namespace, such as in a container with hostNetwork",
} as const;

const lookAt = (path: string) => `look at it by hand: cat ${path}`;

const applyWords: WordsOf<typeof applyFindings> = {
  'bad-bundle': byCase('problem', {
    missing: ({ path }) => [notApplied(path, ['there is no such folder or file']), notFound],
    'no-folder': ({ path }) => [notApplied(path, ['it is neither a folder nor a pack']), notFound],
    broken: ({ path, problems, writer = version }) => {
      const again = 'compile it again with "kpc compile -o", and copy all of it';
      const versions = `kpc ${writer} wrote it and this is kpc-apply ${version}: use the same version of both`;
      return [notApplied(path, problems.map(bundleFaultWords)), writer === version ? again : `${again}; ${versions}`];
    },
    dump: ({ path }) => [
      `${path} is a dump that "kpc-apply dump" wrote, not a bundle: it names no Services`,
      'compile a bundle from manifests with "kpc compile -o"; "kpc-apply rollback" restores the state before the last apply',
    ],
    exposed: ({ path, of, exposure }) => {
      const [text, advice] = exposureWords(exposure);
      return [`other users can change ${trusted[of]} ${path}: ${text}`, advice];
    },
    replaced: ({ path, of }) => [
      `${trusted[of]} ${path} was replaced after its owner and mode were checked`,
      'run the command again',
    ],
  }),
  'bad-state-folder': byCase('problem', {
    exposed: ({ path, exposure }) => {
      const [text, advice] = exposureWords(exposure);
      return [
        `users other than root can change the state folder ${path}: ${text}`,
        `${advice}, or choose another folder with --state-dir`,
      ];
    },
    damaged: ({ path, of, reason }) => [`${path} is damaged: ${bundleFaultWords(reason)}`, repairs[of]],
    'other-state': ({ path }) => [`${path} is damaged: it holds a state with another id`, 'remove it'],
    'other-network': ({ path, network, here }) => {
      const whose =
        network === undefined ? 'does not say to which network it belongs' : `belongs to network ${network}`;
      return [
        `an apply did not finish, and its journal ${path} ${whose}; this is network ${here}`,
        network === undefined
          ? 'an earlier version wrote it: run rollback with that version, in the network that it changed; or remove the journal, then apply with --adopt'
          : 'run "kpc-apply rollback" there, or choose another folder with --state-dir',
      ];
    },
  }),
  'bad-usage': byCase('problem', {
    'command-line': ({ reason, help }) => [reason, help],
    'no-cidr': ({ cidr }) => [`"${cidr}" is not a CIDR`, 'write one like 10.1.0.0/16'],
    'no-state': ({ id, states }) => [`there is no state ${id} to go back to`, adviseOnStates(states)],
    'no-keys': ({ path, reason }) => [
      `--trust ${path}: ${unreadWords(reason)}`,
      'write the public key there: openssl pkey -in kpc.key -pubout -out kpc.pub',
    ],
    'one-port': ({ socket }) => [`--metrics and --healthz are both ${socket}`, 'give each a port of its own'],
    folder: ({ why }) => {
      const [text, help = 'name another folder'] = describeFolderProblem(why);
      return [text, help];
    },
  }),
  busy: ({ pid, command }) => [
    `another kpc-apply is running: process ${pid}, "${command}"`,
    'wait until it has ended, then try again',
  ],
  conflict: ({ objects }) => [
    `these exist already, but kpc-apply did not make them: ${nameSome(objects.map(nameObject), 5)}`,
    objects.every(({ adoptable }) => adoptable)
      ? 'if kube-proxy left them, apply with --adopt to take them over'
      : 'stop the program that made them and remove them, or remove what collides with them from the bundle',
  ],
  'internal-error': ({ reason }) => [reason, 'this is a bug in kpc-apply: report it with this line and the command'],
  interrupted: ['stopped by a signal', 'run the command again when you are ready'],
  'node-too-large': byCase('problem', {
    file: (details) => tooLong(details.path, details),
    output: (details) => tooLong(`the output of "${details.command}"`, details),
    flows: ({ most }) => [
      `there are flows between more than ${most} pairs of addresses`,
      'apply again after the next change, or delete them by hand: conntrack -D',
    ],
  }),
  'not-confirmed': ({ seconds }) => [
    `no confirmation${seconds === undefined ? '' : ` within ${seconds} s`}`,
    'if the node can still be reached, run the command again, and "kpc-apply confirm" in time',
  ],
  'not-ready': byCase('problem', {
    'kube-proxy': ({ process }) => [
      `${nameProcess(process)}: its rules have the same names as kpc-apply's, so they would be removed too`,
      `${stopProcess(process)} first, or leave the node to kube-proxy; --force continues anyway`,
    ],
    'unseen-kube-proxy': ({ unseen }) => [
      `it is unknown whether a kube-proxy is running and needs the rules that would be removed: ${unseenWords[unseen][0]}`,
      adviseUnseen(unseen, 'no kube-proxy'),
    ],
    'unseen-tools': ({ unseen }) => [
      `an apply was killed, and it is unknown whether a tool that it started is still changing the node: ${unseenWords[unseen][0]}`,
      adviseUnseen(unseen, 'no such tool'),
    ],
    refused: ({ checks }, say) => {
      const said = checks.map(say);
      return [said.map(({ text }) => text).join('; '), said[0]?.help ?? 'see "kpc-apply doctor"'];
    },
  }),
  'not-trusted': byCase('problem', {
    unsigned: ({ path }) => [
      `${path} is not signed`,
      'give a pack that "kpc bundle pack --sign" wrote: a folder has no signature',
    ],
    damaged: ({ path }) => [`the signature of ${path} is damaged`, 'copy the pack again'],
    'unknown-key': ({ path, key, known }) => [
      `${path} is signed by key ${key}, which is not trusted`,
      `trusted keys: ${known.join(', ')}; if this is your new key, add it to the file that --trust names`,
    ],
    wrong: ({ path }) => [
      `the signature of ${path} is wrong: the bundle has changed since it was signed`,
      'do not use this pack',
    ],
    older: ({ path, serial, least }) => [
      `${path} has serial ${serial}, but this node already had serial ${least}`,
      'use the newest pack; to go back to an older state, sign it again with a higher --serial',
    ],
  }),
  'nothing-to-confirm': ({ holder }) => {
    const nothing = 'no apply is waiting to be confirmed';
    return holder
      ? [
          `${nothing}: process ${holder.pid} ("${holder.command}") is still changing the node or rolling it back`,
          'wait until apply asks for confirmation, then run "kpc-apply confirm"',
        ]
      : [nothing, 'confirm an apply within its --confirm-timeout; an apply that was killed before that is rolled back'];
  },
  'nothing-to-roll-back': ({ folder, states }) => [
    `${folder} holds no earlier state to restore`,
    adviseOnStates(states),
  ],
  'nothing-to-undo': ({ last, states }) => [
    `${describeLastCommand(last)}: there is nothing to undo`,
    adviseOnStates(states),
  ],
  'system-error': byCase('problem', {
    refused: ({ reason, lacks }) => [
      unreadWords(reason),
      lacks === undefined ? 'fix the cause and try again' : lacking[lacks],
    ],
    'no-standby': ({ cause }, say) => [
      `nothing would roll back if this process were killed: ${describeCause(cause, say)}`,
      'fix the cause, or apply without --confirm-timeout; nothing has been changed',
    ],
    'no-timer': ({ status, said }) => `systemd-run ended with ${status}: ${said}`,
    'unknown-start': 'kpc-apply does not know how it was started',
    silent: ({ seconds }) => `it printed nothing for ${seconds} s`,
    ended: ({ status, said }) => said || `it ended with ${status}`,
  }),
  'tool-failed': byCase('problem', {
    failed: ({ line, said, ...end }) => [
      [describeEnd({ said, ...end }), said, line ? `line ${line.number}: ${line.text}` : ''].filter(Boolean).join('\n'),
      'fix the cause and apply again; --dry-run prints what each tool is given',
    ],
    late: ({ command, seconds }) => [`"${command}" has not ended within ${seconds} s`, awaited],
    'not-stopped': ({ command }) => [`"${command}" did not end after a signal`, awaited],
    'open-output': ({ command }) => [
      `"${command}" has ended, but a process that it started keeps its output open`,
      awaited,
    ],
  }),
  'tool-missing': ({ tool, to }) =>
    to === 'read'
      ? [`${tool} is missing, so this node cannot be read`, 'install it; "kpc-apply doctor" names the package']
      : [`${tool} is missing`, '"kpc-apply doctor" names the package'],
  'unreadable-node': byCase('problem', {
    failed: ({ isRefused, ...end }) => [
      [describeEnd(end), end.said].filter(Boolean).join(': '),
      isRefused
        ? rightsAdvice
        : 'run the command by hand to see what it needs; "kpc-apply doctor" looks for the usual reasons',
    ],
    'bad-output': ({ command, tool, fault }) => [
      `"${command}" exited with status 0, but its output is incomplete: ${describeOutputFault(fault)}`,
      `run the command by hand to see what it prints; check that ${tool} is the real program`,
    ],
    'bad-file': ({ path, fault }) => [`${path} is incomplete: ${describeOutputFault(fault)}`, lookAt(path)],
    'no-number': ({ path }) => [`${path} does not hold a number`, lookAt(path)],
    'hidden-table': ({ command, table, family }) => [
      `${command} cannot show the table ${table}: it holds rules that only nft can read`,
      `see "nft list table ${family} ${table}", and move rules that another program added with nft to a table of their own; nftables mode does not need that table`,
    ],
    'no-network': [
      '/proc does not show which kernel and network this is',
      'mount proc at /proc; see "readlink /proc/self/ns/net"',
    ],
    'no-proc-net': [
      "/proc/net, which shows the kernel's network state, is not visible here",
      'mount all of /proc: its option subset=pid (in a systemd unit: ProcSubset=pid) hides this',
    ],
    'no-mark': ({ tool, end, because }) => [
      [
        'kpc-apply cannot mark this network namespace, so later runs could not tell that its record belongs here',
        ...(end ? [describeEnd(end), end.said] : [`${tool} is missing`]),
      ]
        .filter(Boolean)
        .join(': '),
      noMark[because],
    ],
    leftovers: ({ failure }, say) => {
      const { text, help } = say(failure);
      return [
        `--adopt takes over what a kube-proxy left, but some of the rules cannot be read: ${text}`,
        `${help}; if you know that no kube-proxy left any there, add --assume-alone`,
      ];
    },
  }),
  'write-failed': byCase('problem', {
    lock: ({ folder, of, cause }, say) => [
      `cannot take the lock in ${folder}: ${describeCause(cause, say)}`,
      lockAdvice[of](folder),
    ],
    journal: ({ folder, cause }, say) => [
      `cannot save a snapshot in ${folder}: ${describeCause(cause, say)}`,
      'free some space there, or choose another folder with --state-dir; nothing has been changed',
    ],
    metrics: ({ path }) => `kpc-apply did not write the content of ${path}: remove it`,
    sysctl: ({ name, value, cause }, say) => [
      `cannot set ${name} to ${value}: ${describeCause(cause, say)}`,
      'check that its kernel module is loaded and that /proc/sys is writable here',
    ],
  }),
  'wrong-result': ({ rest }) => [
    `the tools reported success, but the node is not as it should be; still to do:\n${listRest(rest).join('\n')}`,
    'check whether another program (kube-proxy, a firewall manager) changes the same rules, then apply again',
  ],
};

const words = { ...applyWords, ...checkWords, ...remarkWords };

export function sayApply(fault: FailureFault | CheckFault | Remark): Said {
  return sayIn(words, fault);
}
