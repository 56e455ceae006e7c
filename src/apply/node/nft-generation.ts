import type { Host } from './host.ts';
import { mostSaid, Room } from './output.ts';

/** The kernel counts each change of nftables rules in this network; the same count means the same tables, except for learned clients. */
export interface NftGeneration {
  /** The network's cookie, unique until reboot, and the loaded module nf_tables. Both events start a new count. */
  readonly counter: string;
  readonly count: number;
}

/** Asks with Perl: Node has no netlink sockets, and nft does not print the count. Undefined if anything is unusual. */
export async function readNftGeneration(host: Host): Promise<NftGeneration | undefined> {
  try {
    const result = await host.run({ tool: 'perl', args: ['-e', program], room: new Room(mostSaid) });
    if (result.kind === 'missing' || result.status !== 0) return undefined;
    const [, counter, count] = /^(\d+ \d+) (\d+)\n$/.exec(result.stdout) ?? [];
    return counter === undefined ? undefined : { counter, count: Number(count) };
  } catch {
    return undefined;
  }
}

/** Whether the only changes between the two are this many transactions. */
export function isLaterBy(transactions: number, before: NftGeneration, after: NftGeneration | undefined): boolean {
  return before.counter === after?.counter && before.count + transactions === after.count;
}

/**
 * Sends NFT_MSG_GETGEN and reads NFTA_GEN_ID from the answer (linux/netfilter/nf_tables.h). Calls
 * getsockopt(SO_NETNS_COOKIE) by number: Perl's built-in function passes 256 bytes, but the kernel only accepts 8.
 * Kernels before 5.14 have no cookie, and other processors use other system call numbers: then there is no count.
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
