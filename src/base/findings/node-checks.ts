// Findings of doctor about a node, and remarks of kpc-apply during its work. These codes are not printed.
import type { Family } from '../../kernel/address.ts';
import type { SysctlReason } from '../../kernel/sysctls-and-modules.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { Cause, KubeProxyProcess, Obstacle, Unseen } from './apply.ts';
import type { By, Cited, Lists, None, Numbers, Strings } from './rows.ts';

type BothVariants = Strings<'variant' | 'other'>;

type Sysctl = Strings<'name' | 'value'>;

/** `loadsModules` says whether the kernel loads modules by itself. */
type Unloaded = Lists<'names'> & { readonly loadsModules: boolean };

export type NftFeature = 'dnat' | 'masquerade' | 'numgen' | 'fib' | 'reject' | 'ct';

/** A record or journal in the state folder that belongs to another network of this boot. `mark` is that network's mark. */
export interface OtherNetwork extends Strings<'path' | 'here'> {
  readonly of: 'journal' | 'record';
  readonly network?: string | undefined;
  readonly mark?: string | undefined;
}

export interface CheckArguments {
  rights: By<'found', { enough: None; 'too-few': None }>;
  tools: By<
    'found',
    {
      works: Strings<'name' | 'details'>;
      'writes-new-sets': Strings<'name' | 'details'>;
      missing: Strings<'name' | 'family'>;
      broken: Strings<'name' | 'asked' | 'said'> & { readonly because?: 'rights' | 'no-ipvs' | undefined };
      old: Strings<'name' | 'family' | 'version' | 'least'>;
      /** `isVariant` means that the kernel may support only the other variant of iptables. */
      unreadable: { readonly failure: Cited; readonly isVariant: boolean };
      /** Sizes in MB. */
      'no-room': Numbers<'most' | 'bundle' | 'others'>;
    }
  >;
  addresses: By<'found', { all: None; missing: Lists<'addresses'> }>;
  modules: By<
    'found',
    {
      present: Lists<'names'>;
      loadable: Lists<'names'>;
      'not-allowed': Lists<'names'>;
      unknown: Unloaded;
      missing: Unloaded;
    }
  >;
  sysctls: By<
    'found',
    {
      absent: Strings<'name'>;
      right: Sysctl;
      settable: Sysctl & Strings<'wanted'>;
      fixed: Sysctl & Strings<'wanted'>;
      zero: Strings<'name'> & { readonly effect: 'no-forwarding' | 'bridge' | 'arp' };
    }
  >;
  iptables: By<
    'found',
    {
      one: BothVariants;
      both: BothVariants & Numbers<'chains'> & { readonly by: 'kpc-apply' | 'kube-proxy' };
      unknown: BothVariants & { readonly failure: Cited };
      'no-tool': None;
    }
  >;
  kernel: By<'found', { new: Strings<'release'>; old: Strings<'release' | 'least'>; unknown: None }>;
  nftables: By<
    'found',
    {
      whole: None;
      'no-tool': None;
      'not-allowed': Strings<'said'>;
      broken: Strings<'said'>;
      lacks: Strings<'said' | 'modules' | 'family'> & {
        readonly feature: NftFeature;
        readonly mayChange: boolean;
      };
    }
  >;
  'kube-proxy': By<
    'found',
    {
      none: None;
      running: { readonly process: KubeProxyProcess };
      /** `mustSee` means that even a process that kpc-apply cannot see would matter. */
      unknown: { readonly unseen: Unseen; readonly mustSee: boolean };
    }
  >;
  endpoints: Numbers<'assumed'>;
  routes: { readonly family: Family };
  state: By<
    'found',
    {
      whole: Strings<'folder'> & { readonly isEmpty: boolean };
      unfinished: Strings<'folder'>;
      elsewhere: OtherNetwork;
      unreadable: { readonly failure: Cited };
    }
  >;
}

export type CheckFault = {
  readonly [Subject in keyof CheckArguments]: {
    readonly code: Subject;
    readonly arguments: CheckArguments[Subject];
  };
}[keyof CheckArguments];

/** A port of watch. `of`: the address, or the Service whose health it shows. */
export interface PortUse extends Numbers<'port'>, Strings<'of'> {
  readonly use: 'metrics' | 'health' | 'health check';
  readonly family?: Family;
}

export interface RemarkArguments {
  /** Why there is no process or no timer to roll back an unconfirmed apply. */
  'one-standby': { readonly lacks: 'process' | 'timer'; readonly cause: Cause };
  'balancer-not-reloaded': Strings<'path'>;
  'open-journal': Strings<'path'> & { readonly cause: Cause };
  'rules-unseen': { readonly failure: Cited };
  'rules-left': { readonly objects: readonly Obstacle[] };
  /** `isForeign`: only the objects of other programs are lacking. */
  'dump-lacks': { readonly failure: Cited; readonly isForeign: boolean };
  'flows-of-gone-services': None;
  'flows-of-gone-endpoints': { readonly cause: Cause };
  'lower-limit': Strings<'name' | 'from' | 'to'> & { readonly why?: SysctlReason | undefined };
  'left-sysctls': { readonly mode: ProxyMode } & Lists<'names'>;
  'affinity-lost': { readonly from: ProxyMode; readonly to: ProxyMode };
  'check-failed': { readonly check: CheckFault };
  'cut-output': Strings<'command'> & Numbers<'most'> & { readonly of: 'stdout' | 'stderr' };
  'other-network': OtherNetwork;
  'read-pack': Strings<'path' | 'digest'> & { readonly signer?: string | undefined; readonly isChecked: boolean };
  'good-bundle-again': Strings<'path'>;
  'on-last-good-bundle': None;
  'no-good-bundle': None;
  'bundle-not-kept': { readonly cause: Cause };
  'serial-not-kept': Strings<'path'> & { readonly cause: Cause };
  'port-not-opened': PortUse & { readonly cause: Cause };
  'metrics-not-written': { readonly cause: Cause };
}

export type Remark = {
  readonly [Code in keyof RemarkArguments]: { readonly code: Code; readonly arguments: RemarkArguments[Code] };
}[keyof RemarkArguments];

export function remarkOf<Code extends Remark['code']>(code: Code, details: RemarkArguments[Code]): Remark {
  return { code, arguments: details } as Remark;
}
