import { families, type Family } from '../../kernel/family.ts';
import { nftTableName } from '../../kube-proxy/nft-names.ts';
import type { Host } from './host.ts';

/**
 * Asks the kernel for single objects of nftables, which nft cannot: whatever it is asked to list, it reads all sets of the
 * table first, and each Service port has one. Perl opens the kernel's socket, which Node cannot; Debian and Ubuntu
 * always have it. Everything here gives undefined if it is missing or anything is out of the ordinary, and
 * then nft reads the whole table.
 */

/** One question about the table kube-proxy of a family, or whether another table is there. */
export type NftQuestion = { readonly family: Family } & (
  | { readonly about: 'table'; readonly name?: string | undefined }
  | { readonly about: 'chain' | 'set' | 'elements'; readonly name: string }
  /** `key` as an answer about elements has it. */
  | { readonly about: 'element'; readonly name: string; readonly key: string }
);

/** The answers to some questions, and in which generation of the rules they were given. */
export interface NftAnswers {
  /** Grows by one whenever any program changes anything in nftables, in this network namespace. */
  readonly generation: number;
  /** The network namespace: "4026531840 cookie 1". The number of one that has ended soon comes again, its cookie never. */
  readonly network: string;
  /** One for each question: lines that are the same where the objects are, whatever numbers the kernel gave them. */
  readonly answers: readonly string[];
}

const familyNumber: { readonly [F in Family]: number } = { ipv4: 2, ipv6: 10 };

/** What the program reads on its standard input. */
export function formatQuestions(questions: readonly NftQuestion[]): string {
  const lines = questions.map((question) => {
    const { about, family, name = '' } = question;
    return [about, familyNumber[family], name, about === 'element' ? question.key : ''].join(' ').trimEnd();
  });
  return lines.map((line) => `${line}\n`).join('');
}

/** Asks this network namespace's kernel. */
export async function askKernel(host: Host, questions: readonly NftQuestion[]): Promise<NftAnswers | undefined> {
  try {
    const result = await host.run({
      tool: 'perl',
      args: ['-e', netlinkProgram, nftTableName],
      stdin: formatQuestions(questions),
    });
    if (result.kind === 'missing' || result.status !== 0) return undefined;
    return readAnswers(result.stdout, questions.length);
  } catch {
    // It hangs, say. nft reads the whole table then.
    return undefined;
  }
}

/** Undefined if the answers are not those to so many questions, or the rules changed in between. */
export function readAnswers(output: string, count: number): NftAnswers | undefined {
  const match = /^(generation (\d{1,10}) of (.+)\n)([\s\S]*)\1$/.exec(output);
  if (!match) return undefined;
  const [, , generation = '', network = '', body = ''] = match;
  const answers = body.split(/^\.\n/m);
  if (answers.pop() !== '' || answers.length !== count) return undefined;
  return { generation: Number(generation), network, answers };
}

/** What the kernel says of kube-proxy's tables: their flags, and how many chains and sets each has. */
export const aboutTables: readonly NftQuestion[] = families.map((family) => ({ about: 'table', family }));

/** Which of these tables the kernel has; undefined if it is not known. */
export async function findNftTables(
  host: Host,
  family: Family,
  names: readonly string[],
): Promise<readonly string[] | undefined> {
  const questions = names.map((name): NftQuestion => ({ about: 'table', family, name }));
  const asked = await askKernel(host, questions);
  return asked && names.filter((_, i) => asked.answers[i] !== 'none\n');
}

/** "element KEY VALUE" → KEY, of an answer about elements. Throws if a key cannot be asked for. */
export function keysIn(answer: string): readonly string[] {
  return [...answer.matchAll(/^element (\S*) /gm)].map(([line, key = '']) => {
    if (/^[0-9a-f]+$/.test(key)) return key;
    throw new Error(`no key: ${line}`);
  });
}

/** The lines of the elements of these keys, as a question for one of them is answered: see keysIn. */
export function elementIn(answer: string, key: string): string {
  const line = answer.split('\n').find((each) => each.startsWith(`element ${key} `));
  return `${line ?? 'none'}\n`;
}

/**
 * For the numbers see linux/netfilter/nf_tables.h and linux/netlink.h. An answer ends with a line that holds a dot. Left out
 * is what differs between two objects that do the same: handles, positions, the names of anonymous sets,
 * the time that an element has left, and the comments of chains and sets.
 */
export const netlinkProgram = String.raw`
use strict;
use warnings;
use Config;
alarm 60;
my $table = shift;
my $sequence = 0;
my %system_calls = (
  x86_64 => 55, aarch64 => 209, riscv64 => 209, loongarch64 => 209, powerpc64le => 340, ppc64le => 340, s390x => 365,
);
socket(my $kernel, 16, 3, 12) or die "socket: $!\n";

sub attribute {
  my ($type, $data) = @_;
  return pack("SS", 4 + length $data, $type) . $data . "\0" x (-length($data) & 3);
}

sub text {
  my ($type, $data) = @_;
  return attribute($type, "$data\0");
}

# The attributes of each object; undef where there is none.
sub ask {
  my ($type, $flags, $family, $attributes) = @_;
  my $body = pack("CCn", $family, 0, 0) . $attributes;
  my $message = pack("LSSLL", 16 + length $body, 2560 + $type, $flags | 1, ++$sequence, 0) . $body;
  defined send($kernel, $message, 0, pack("SSLL", 16, 0, 0, 0)) or die "send: $!\n";
  my @found;
  while (1) {
    defined recv($kernel, my $data, 1 << 20, 0) or die "receive: $!\n";
    my $at = 0;
    while ($at + 16 <= length $data) {
      my ($length, $kind, $state, $number) = unpack "LSSL", substr $data, $at, 16;
      die "a message of $length bytes\n" if $length < 16 || $at + $length > length $data;
      my $content = substr $data, $at + 16, $length - 16;
      $at += ($length + 3) & ~3;
      next if $number != $sequence;
      die "changed meanwhile\n" if $state & 16;
      return \@found if $kind == 3;
      if ($kind == 2) {
        my $fault = unpack "l", $content;
        return undef if $fault == -2;
        die "refused: $fault\n";
      }
      push @found, list(substr $content, 4);
      return \@found unless $state & 2;
    }
  }
}

# Pairs of type and data.
sub list {
  my ($data) = @_;
  my @found;
  my $at = 0;
  while ($at + 4 <= length $data) {
    my ($length, $type) = unpack "SS", substr $data, $at, 4;
    die "an attribute of $length bytes\n" if $length < 4 || $at + $length > length $data;
    push @found, [$type & 0x3fff, substr $data, $at + 4, $length - 4];
    $at += ($length + 3) & ~3;
  }
  return \@found;
}

sub pick {
  my ($attributes, $type) = @_;
  for (@$attributes) { return $_->[1] if $_->[0] == $type }
  return undef;
}

sub show {
  my ($attributes, @types) = @_;
  my @texts;
  for my $type (@types) {
    my $data = pick($attributes, $type);
    push @texts, "$type=" . unpack("H*", $data) if defined $data;
  }
  return join ",", @texts;
}

sub show_set {
  my ($family, $name) = @_;
  my $found = ask(10, 0, $family, text(1, $table) . text(2, $name)) or return "none\n";
  return "set " . show($found->[0], 3 .. 9, 11, 15, 17, 18) . "\n";
}

sub show_element {
  my ($element) = @_;
  my $key = pick($element, 1);
  die "an element without a key of its own\n" if !defined $key || defined pick($element, 10);
  return "element " . unpack("H*", $key) . " " . show($element, 2 .. 4, 6, 7, 9, 11) . "\n";
}

# All of a set, or the one of this key.
sub show_elements {
  my ($family, $name, $key) = @_;
  my $only = defined $key ? attribute(0x8003, attribute(0x8001, attribute(0x8001, pack "H*", $key))) : "";
  my $messages = ask(13, defined $key ? 0 : 0x300, $family, text(1, $table) . text(2, $name) . $only) or return "none\n";
  my @lines;
  for my $elements (grep { defined } map { pick($_, 3) } @$messages) {
    push @lines, show_element(list($_->[1])) for @{list($elements)};
  }
  return join "", sort @lines;
}

sub show_expression {
  my ($family, $expression) = @_;
  my $name = pick($expression, 1);
  my $data = pick($expression, 2);
  $data = "" unless defined $data;
  if ($name =~ /^(?:lookup|dynset)\0/) {
    my $set = pick(list($data), 1);
    if ($set =~ /^(__(?:set|map)\d+)\0/) {
      my $content = show_set($family, $1) . show_elements($family, $1);
      $content =~ tr/\n/;/;
      return unpack("H*", $name) . " " . show(list($data), 2 .. 9) . " {" . $content . "}";
    }
  }
  return unpack("H*", $name) . " " . unpack("H*", $data);
}

sub show_chain {
  my ($family, $name) = @_;
  my $found = ask(4, 0, $family, text(1, $table) . text(3, $name)) or return "none\n";
  my $lines = "chain " . show($found->[0], 4, 5, 7, 10) . "\n";
  my $rules = ask(7, 0x300, $family, text(1, $table) . text(2, $name)) or return "none\n";
  for my $rule (@$rules) {
    my $expressions = pick($rule, 4);
    $lines .= "rule " . show($rule, 5, 7) . "\n";
    next unless defined $expressions;
    $lines .= show_expression($family, list($_->[1])) . "\n" for @{list($expressions)};
  }
  return $lines;
}

sub show_table {
  my ($family, $name) = @_;
  my $found = ask(1, 0, $family, text(1, $name // $table)) or return "none\n";
  return "table " . show($found->[0], 2) . " " . unpack("N", pick($found->[0], 3)) . "\n";
}

# By getsockopt, whose own function in perl asks for more bytes than the kernel has. Kernels before 5.14 have none.
sub cookie {
  my ($architecture) = $Config{archname} =~ /^(\w+)/;
  my $call = $system_calls{$architecture};
  return "" unless defined $call;
  my ($cookie, $length) = ("\0" x 8, pack "L", 8);
  return "" if syscall($call, fileno($kernel), 1, 71, $cookie, $length) != 0;
  return " cookie " . unpack "Q", $cookie;
}

sub generation {
  my $found = ask(16, 0, 0, "") or die "no generation\n";
  my ($number) = (readlink("/proc/self/ns/net") // "") =~ /(\d+)/ or die "no network namespace\n";
  return "generation " . unpack("N", pick($found->[0], 1)) . " of $number" . cookie() . "\n";
}

my %about = (
  table => \&show_table, chain => \&show_chain, set => \&show_set, elements => \&show_elements,
  element => \&show_elements,
);
print generation();
while (<STDIN>) {
  my ($about, @what) = split;
  print $about{$about}->(@what), ".\n";
}
print generation();
`;
