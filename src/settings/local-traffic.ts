import { findNearest } from '../base/find-nearest.ts';
import { text } from '../base/json-schema.ts';
import { isInterfaceName, isInterfacePrefix } from '../base/object-names.ts';
import { printable } from '../base/printable.ts';
import { quote } from '../base/wording.ts';
import { listOf, objectOf, text as storedText, variantOf } from '../base/shape.ts';
import type { Shaped } from '../base/shape.ts';
import { parseNetwork } from '../kernel/address.ts';
import { field } from './field.ts';
import { textFlag } from './flag.ts';
import { readNetwork } from './kinds.ts';
import { given, quoteGiven, refuse, setting } from './setting.ts';
import type { SettingSource } from './setting.ts';

const modeFlag = textFlag(
  '--detect-local-mode <mode>',
  'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
);
const bridgeFlag = textFlag('--pod-bridge-interface <name>', 'the bridge of the pods, for BridgeInterface');
const prefixFlag = textFlag(
  '--pod-interface-name-prefix <prefix>',
  "the prefix of the pods' interface names, for InterfaceNamePrefix",
);
const modeField = field('detectLocalMode', text);
const bridgeField = field('detectLocal.bridgeInterface', text);
const prefixField = field('detectLocal.interfaceNamePrefix', text);

const storedDetectLocal = variantOf('mode', {
  ClusterCIDR: objectOf<object>({}),
  NodeCIDR: objectOf<object>({}),
  BridgeInterface: objectOf({ bridgeInterface: storedText }),
  InterfaceNamePrefix: objectOf({ interfaceNamePrefix: storedText }),
});

/** How the traffic of the node's own Pods is told from other traffic. */
export type DetectLocal = Shaped<typeof storedDetectLocal>;

type DetectLocalMode = DetectLocal['mode'];

const detectLocalModes: readonly DetectLocalMode[] = [
  'ClusterCIDR',
  'NodeCIDR',
  'BridgeInterface',
  'InterfaceNamePrefix',
];

/** How local traffic is told, where what was given is right; kube-proxy's default is ClusterCIDR. */
export const detectLocal = setting({
  flags: [modeFlag, bridgeFlag, prefixFlag],
  fields: [modeField, bridgeField, prefixField],
  defaultIn: (): DetectLocal => ({ mode: 'ClusterCIDR' }),
  read: (source) => {
    const written = given(source, modeFlag, modeField);
    const mode = findMode(written?.value);
    if (written && written.value !== '' && !mode) {
      const hint = findNearest(written.value, detectLocalModes) ?? `one of ${detectLocalModes.join(', ')}`;
      refuse(source, written, 'bad-detect-local', `${written.name} is ${quote(written.value)}: write ${hint}`);
    }
    return mode && readDetectLocal(source, mode);
  },
  stored: storedDetectLocal,
  must: { text: 'name an interface', isMet: isDetectable },
});

function findMode(name: string | undefined): DetectLocalMode | undefined {
  return detectLocalModes.find((known) => known === name);
}

function readDetectLocal(source: SettingSource, mode: DetectLocalMode): DetectLocal {
  switch (mode) {
    case 'BridgeInterface': {
      const bridgeInterface = source.flag(bridgeFlag) ?? source.field(bridgeField) ?? '';
      const isRight = isInterfaceName(bridgeInterface);
      checkInterface(source, mode, { name: bridgeInterface, isRight, what: 'an interface name', most: 15 });
      return { mode, bridgeInterface };
    }
    case 'InterfaceNamePrefix': {
      const interfaceNamePrefix = source.flag(prefixFlag) ?? source.field(prefixField) ?? '';
      const isRight = isInterfacePrefix(interfaceNamePrefix);
      const what = 'a prefix of interface names';
      checkInterface(source, mode, { name: interfaceNamePrefix, isRight, what, most: 14 });
      return { mode, interfaceNamePrefix };
    }
    case 'NodeCIDR':
    case 'ClusterCIDR':
      return { mode };
    default:
      return mode satisfies never;
  }
}

interface InterfaceText {
  readonly name: string;
  readonly isRight: boolean;
  readonly what: string;
  /** How many bytes it has at most. */
  readonly most: number;
}

function checkInterface(
  source: SettingSource,
  mode: 'BridgeInterface' | 'InterfaceNamePrefix',
  { name, isRight, what, most }: InterfaceText,
): void {
  const { field: own, flag } = {
    BridgeInterface: { field: bridgeField, flag: bridgeFlag },
    InterfaceNamePrefix: { field: prefixField, flag: prefixFlag },
  }[mode];
  const path = source.hasSection('detectLocal') ? own.path : modeField.path;
  if (name === '') {
    refuse(source, { path }, 'bad-detect-local', `detectLocalMode ${mode} needs ${own.name}, or ${flag.name}`);
  } else if (!isRight) {
    const fault = `${quote(name)} is not ${what}: ${most} bytes at most, without blanks, quotes, slashes or *; kube-proxy takes it, and its rules fail or match other interfaces`;
    refuse(source, { path }, 'bad-detect-local', fault);
  }
}

function isDetectable(value: DetectLocal): boolean {
  switch (value.mode) {
    case 'ClusterCIDR':
    case 'NodeCIDR':
      return true;
    case 'BridgeInterface':
      return isInterfaceName(value.bridgeInterface);
    case 'InterfaceNamePrefix':
      return isInterfacePrefix(value.interfaceNamePrefix);
    default:
      return value satisfies never;
  }
}

const cidrFlag = textFlag('--cluster-cidr <cidrs>', "the pods' CIDRs: other traffic to cluster IPs is masqueraded");
const cidrField = field('clusterCIDR', text);

/** At most one of each family; kube-proxy looks at them only where local traffic is told by them, and so does kpc. */
export const clusterCIDRs = setting({
  flags: [cidrFlag],
  fields: [cidrField],
  defaultIn: (): readonly string[] => [],
  read: (source) => {
    const written = given(source, cidrFlag, cidrField);
    if (!written || written.value === '') return undefined;
    const cidrs = written.value.split(',');
    const localMode = findMode(given(source, modeFlag, modeField)?.value) ?? 'ClusterCIDR';
    if (localMode !== 'ClusterCIDR') return cidrs;
    const networks = cidrs.map((value) => readNetwork(source, { ...written, value }));
    const count = new Set(networks.map((network) => network?.family)).size;
    if (count < cidrs.length && !networks.includes(undefined)) {
      refuse(source, written, 'bad-cidr', `${quoteGiven(written)}: write one network, or one of each family`);
    }
    return cidrs;
  },
  stored: listOf(storedText),
  must: {
    text: 'be CIDRs',
    isMet: (cidrs, settings: { readonly detectLocal: DetectLocal }) =>
      settings.detectLocal.mode === 'ClusterCIDR'
        ? cidrs.every((cidr) => parseNetwork(cidr.trim()))
        : cidrs.every((cidr) => printable(cidr) === cidr),
  },
});
