import { type Bounded, type Exceeded, mostOf } from '../../base/bounds.ts';
import { formatCount } from '../../base/printable.ts';
import type { GitFailure, Packed, PlainUnread, ProgramProblem, Unread } from '../../base/unread.ts';
import type { LineFault } from '../../kernel/lines.ts';

const places: Readonly<Record<Bounded, string>> = {
  bytes: 'bytes of one input',
  lines: 'lines of one input',
  values: 'values of one text',
  words: 'words and signs of YAML that is not plain',
  file: 'MB of one file',
  bundle: 'MB of one bundle',
  network: "MB about one node's network",
  archive: 'MB of one archive',
  files: 'files of one archive',
  name: 'bytes of one name in an archive',
  patterns: 'patterns of one list',
};

export function boundWords({ of, most }: Exceeded): string {
  const amount = formatCount(places[of].startsWith('MB') ? Math.floor(most / 2 ** 20) : most);
  const heap =
    most < (mostOf[of] ?? 0)
      ? ', as Node has little memory here: NODE_OPTIONS=--max-old-space-size=4096 gives it 4 GB'
      : '';
  return `too long: kpc reads no more than ${amount} ${places[of]}${heap}`;
}

const unpackers: Readonly<Record<Packed, string>> = {
  gzip: 'gunzip',
  zstd: 'unzstd',
  xz: 'unxz',
  bzip2: 'bunzip2',
  zip: 'unzip',
};

export function programWords(tool: string, problem: ProgramProblem, said: string): string {
  switch (problem) {
    case 'no-program':
      return `there is no ${tool} on the PATH`;
    case 'too-large':
      return `${tool} prints more than kpc reads`;
    case 'too-slow':
      return `${tool} took too long`;
    case 'failed':
      return `${tool} failed: ${said}`;
  }
}

export function gitWords({ problem, said }: GitFailure): string {
  return problem === 'no-object' ? `this clone lacks the object ${said}` : programWords('git', problem, said);
}

const plain: Readonly<Record<PlainUnread, string>> = {
  'made-by-kernel': 'the kernel generates it as it is read: copy its content to a regular file first',
  outside: 'the path, or a link on it, leads out of the repository',
  'link-loop': 'it leads through too many links',
  damaged: 'it is damaged or cut off: copy it again',
  'no-pack': 'it is not a pack that "kpc bundle pack" wrote',
  'not-signed': 'it holds more or less than was signed',
  passphrase: 'the key has a passphrase, which kpc cannot ask for',
  'private-key': 'it holds a private key, which belongs to the signer alone',
  'more-than-keys': 'it holds something other than complete public keys in PEM',
};

export function unreadWords(reason: Unread): string {
  if (typeof reason === 'string') return plain[reason];
  switch (reason.problem) {
    case 'said':
      return reason.said;
    case 'within':
      return `${reason.path}: ${unreadWords(reason.reason)}`;
    case 'too-long':
      return `it is ${boundWords(reason)}`;
    case 'kind':
      return `it is a ${reason.is}, not a file`;
    case 'link-outside':
      return `it is a link to something outside ${reason.folder ?? 'the repository'}`;
    case 'packed':
      return `it is compressed with ${reason.by}: unpack it with ${unpackers[reason.by]}${reason.isTar ? ', and name the .tar that this makes' : ''}`;
    case 'several-nodes':
      return `it holds the support bundles of several nodes: name one of them, such as ${reason.example}`;
    case 'no-key':
      return `it holds ${reason.type ? `a key of type ${reason.type}, and ` : ''}no ${reason.of} ed25519 key in PEM`;
    case 'git':
      return gitWords(reason.failure);
    case 'not-in-revision': {
      const { revision, here } = reason;
      const advice = here === undefined ? '' : `: paths count from the top of the repository; write ${here}`;
      return `revision ${revision} has no such file or folder${advice}`;
    }
  }
}

const words: Readonly<Record<Exclude<LineFault, 'elided' | 'other-line'>, string>> = {
  'control-character': 'a control character in the line',
  duplicate: 'the object that it names is listed above already',
  fragments: 'a rule for fragments',
  'long-line': 'too long a line',
  'mark-server': 'a firewall-mark virtual server, which kube-proxy does not make',
  'named-address': 'an address written as a name (print the list with -n)',
  'no-head':
    'the table, chain, set, link or virtual server that it belongs to is missing above it: print all of the output',
  'no-json': 'not the JSON that ip -j prints',
  'no-name': 'a link without a name',
  'no-prefix': 'not an IP address with its prefix length',
  'no-scheduler': 'a virtual server without a scheduler',
  'not-numeric': 'an address or port that is not numeric (save with ipvsadm -Sn)',
  'open-brace': 'a brace is not closed',
  'open-quote': 'a quote that is not closed',
  'other-hook': 'a hook or priority that kpc does not know',
  'other-object': 'neither a chain, a set, a map nor a counter',
  'other-part': 'not a part of a table',
  'other-policy': 'not a policy that a chain can have',
  'other-property': 'a property that kpc does not know',
  'other-table': 'not a table that iptables has',
  'own-policy': 'a policy for a chain that is not built in',
  'past-end': 'inserted beyond the end of its chain',
  'scheduler-flags': 'scheduler flags that kpc does not know',
  'short-server': 'a real server without its forwarding method or its weight',
  'too-long': 'too long',
  wrapped: 'the lines are wrapped or edited, so none of their rules is read',
};

/** `of`: the kind of output that has the line. */
export function lineFaultWords(reason: LineFault, of: string): string {
  return reason === 'other-line' || reason === 'elided'
    ? `not a line of ${of === 'rules' ? 'iptables rules' : of}, or only a part of one`
    : words[reason];
}
