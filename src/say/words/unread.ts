import { mostOf, type Bounded, type Exceeded } from '../../base/bounds.ts';
import { formatCount } from '../../base/printable.ts';
import { type FileKind, type GitFailure, type Packed, type PlainUnread, type Unread } from '../../base/unread.ts';

const places: Readonly<Record<Bounded, string>> = {
  bytes: 'bytes of one input',
  lines: 'lines of one input',
  values: 'values of one text',
  words: 'words and signs of YAML in this form',
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

export function gitWords({ problem, said }: GitFailure): string {
  switch (problem) {
    case 'no-program':
      return 'the program git is not installed';
    case 'too-large':
      return 'the revision holds more than kpc reads of one';
    case 'too-slow':
      return 'git took too long';
    case 'no-object':
      return `this clone lacks the object ${said}`;
    case 'failed':
      return said;
  }
}

const plain: Readonly<Record<PlainUnread, string>> = {
  'made-by-kernel': 'the kernel makes it up while it is read: copy what it holds to a file first',
  outside: 'the path, or a link on it, leads out of the repository',
  'link-loop': 'it leads through too many links',
  damaged: 'it is damaged or cut off: copy it again',
  'no-pack': 'it is not a pack that "kpc bundle pack" wrote',
  'not-signed': 'it holds more or less than was signed',
  passphrase: 'the key has a passphrase, which kpc cannot ask for',
  'private-key': 'it holds a private key, which belongs to the signer alone',
  'more-than-keys': 'it holds something else beside whole public keys in PEM',
};

const kinds: Readonly<Record<FileKind, string>> = {
  folder: 'a folder',
  pipe: 'a named pipe',
  socket: 'a socket',
  device: 'a device',
  link: 'a link',
  submodule: 'a submodule',
};

export function unreadWords(reason: Unread): string {
  if (typeof reason === 'string') return plain[reason];
  switch (reason.problem) {
    case 'system':
      return reason.said;
    case 'within':
      return `${reason.path}: ${unreadWords(reason.reason)}`;
    case 'too-long':
      return `it is ${boundWords(reason)}`;
    case 'kind':
      return `it is ${kinds[reason.is]}, not a file`;
    case 'link-outside':
      return `it is a link to something outside ${reason.folder ?? 'the repository'}`;
    case 'packed':
      return `it is compressed with ${reason.by}: unpack it with ${unpackers[reason.by]}${reason.isTar ? ', and name the .tar that this makes' : ''}`;
    case 'several-nodes':
      return `it holds the support bundles of several nodes: name one of them, such as ${reason.example}`;
    case 'no-key':
      return `it holds no ${reason.of} key in PEM`;
    case 'other-key':
      return `it holds a key of type ${reason.type}, not ed25519`;
    case 'git':
      return gitWords(reason.failure);
    case 'not-in-revision': {
      const { revision, here, beside } = reason;
      const advice =
        here === undefined
          ? beside && `; compare ${beside.join(' with ')}`
          : `: paths count from the top of the repository; write ${here}`;
      return `revision ${revision} has no such file or folder${advice ?? ''}`;
    }
  }
}
