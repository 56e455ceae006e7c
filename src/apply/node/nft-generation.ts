import type { Host } from './host.ts';
import { mostSaid, Room } from './output.ts';

/**
 * How often the rules of nftables have been changed. The kernel adds one for each transaction that changes anything in this
 * network namespace, whatever program makes it: while the count stands still, the tables are the same. (The clients that
 * session affinity learns are not counted.)
 */
export interface NftGeneration {
  /**
   * What the count belongs to: the network namespace, by the cookie that the kernel gives no other one until it reboots, and
   * the module nf_tables as it is loaded now. Both begin to count anew.
   */
  readonly counter: string;
  readonly count: number;
}

/**
 * Asks the kernel, with Perl: Node cannot open a netlink socket, and nft does not print the count. Undefined if Perl is
 * missing or anything is out of the ordinary. Then the tables have to be listed.
 */
export async function readNftGeneration(host: Host): Promise<NftGeneration | undefined> {
  try {
    const result = await host.run({ tool: 'perl', args: ['-e', program], room: new Room(mostSaid) });
    if (result.kind === 'missing' || result.status !== 0) return undefined;
    const [, counter, count] = /^(\d+ \d+) (\d+)\n$/.exec(result.stdout) ?? [];
    return counter === undefined ? undefined : { counter, count: Number(count) };
  } catch {
    // It does not end, say.
    return undefined;
  }
}

/** Whether nothing has been changed between the two except in this many transactions. */
export function isLaterBy(transactions: number, before: NftGeneration, after: NftGeneration | undefined): boolean {
  return before.counter === after?.counter && before.count + transactions === after.count;
}

/**
 * Sends NFT_MSG_GETGEN, and reads NFTA_GEN_ID from the answer: linux/netfilter/nf_tables.h. getsockopt(SO_NETNS_COOKIE) goes
 * by its number, because Perl's own asks for 256 bytes and the kernel gives 8 only to whoever asks for 8. A kernel without
 * the cookie is older than 5.14, and the node of another kind of processor does without this.
 */
const program = String.raw`
use strict;
use Config;
my %getsockopt = (x86_64 => 55, aarch64 => 209, riscv64 => 209, powerpc64le => 340, s390x => 365);
my $number = $getsockopt{($Config{archname} =~ /^(\w+)/)[0]} or die;
socket(my $kernel, 16, 3, 12) or die;
my ($cookie, $size) = ("\0" x 8, pack "L", 8);
syscall($number, fileno $kernel, 1, 71, $cookie, $size) == 0 or die;
alarm 10;
send $kernel, pack("LSSLLCCn", 20, 2576, 1, 1, 0, 0, 0, 0), 0, pack("SSLL", 16, 0, 0, 0) or die;
recv $kernel, my $answer, 4096, 0;
my ($kind, $attribute, $count) = unpack "x4 S x16 S N", $answer;
die if $kind != 2575 || $attribute != 1;
my $module = (stat "/sys/module/nf_tables")[1] || 0;
print unpack("Q", $cookie), " $module $count\n";
`;
