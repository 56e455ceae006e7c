import { findNearest } from '../../base/find-nearest.ts';
import { text } from '../../diagnostics/json-schema.ts';
import { isInterfaceName, isInterfacePrefix } from '../../base/object-names.ts';
import { printable } from '../../base/printable.ts';
import { listOf, objectOf, text as storedText, variantOf, type Shaped } from '../../base/json-shape.ts';
import { parseNetwork } from '../../kernel/address.ts';
import { field } from './field.ts';
import { textFlag } from './flag.ts';
import { readNetwork } from './kinds.ts';
import { given, refuse, setting, type SettingSource } from './setting.ts';

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

/** How kube-proxy recognises the traffic of the node's own Pods. */
export type DetectLocal = Shaped<typeof storedDetectLocal>;

type DetectLocalMode = DetectLocal['mode'];

const detectLocalModes: readonly DetectLocalMode[] = [
  'ClusterCIDR',
  'NodeCIDR',
  'BridgeInterface',
  'InterfaceNamePrefix',
];

/** How kube-proxy recognises local traffic; the default is ClusterCIDR. */
export const detectLocal = setting({
  flags: [modeFlag, bridgeFlag, prefixFlag],
  fields: [modeField, bridgeField, prefixField],
  defaultIn: (): DetectLocal => ({ mode: 'ClusterCIDR' }),
  read: (source) => {
    const written = given(source, modeFlag, modeField);
    const mode = findMode(written?.value);
    if (written && written.value !== '' && !mode) {
      const hint = findNearest(written.value, detectLocalModes) ?? `one of ${detectLocalModes.join(', ')}`;
      refuse(source, written, 'bad-detect-local', {
        problem: 'unknown',
        name: written.name,
        value: written.value,
        hint,
      });
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
      checkInterface(source, mode, bridgeInterface, isInterfaceName(bridgeInterface) ? undefined : 15);
      return { mode, bridgeInterface };
    }
    case 'InterfaceNamePrefix': {
      const interfaceNamePrefix = source.flag(prefixFlag) ?? source.field(prefixField) ?? '';
      checkInterface(source, mode, interfaceNamePrefix, isInterfacePrefix(interfaceNamePrefix) ? undefined : 14);
      return { mode, interfaceNamePrefix };
    }
    case 'NodeCIDR':
    case 'ClusterCIDR':
      return { mode };
    default:
      return mode satisfies never;
  }
}

function checkInterface(
  source: SettingSource,
  mode: 'BridgeInterface' | 'InterfaceNamePrefix',
  value: string,
  most: 14 | 15 | undefined,
): void {
  const { field: own, flag } = {
    BridgeInterface: { field: bridgeField, flag: bridgeFlag },
    InterfaceNamePrefix: { field: prefixField, flag: prefixFlag },
  }[mode];
  const path = source.hasSection('detectLocal') ? own.path : modeField.path;
  if (value === '') {
    const details = { problem: 'missing', mode, field: own.name, flag: flag.name } as const;
    refuse(source, { path }, 'bad-detect-local', details);
  } else if (most) {
    refuse(source, { path }, 'bad-detect-local', { problem: 'interface', value, most });
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

/** At most one of each family. kube-proxy checks them only in mode ClusterCIDR, and so does kpc. */
export const clusterCIDRs = setting({
  flags: [cidrFlag],
  fields: [cidrField],
  defaultIn: (): readonly string[] => [],
  read: (source) => {
    const written = given(source, cidrFlag, cidrField);
    // An empty field is not set. An empty flag is one empty CIDR.
    if (!written || (written.value === '' && written.path)) return undefined;
    const cidrs = written.value.split(',');
    const localMode = findMode(given(source, modeFlag, modeField)?.value) ?? 'ClusterCIDR';
    if (localMode !== 'ClusterCIDR') return written.value === '' ? undefined : cidrs;
    const networks = cidrs.map((value) => readNetwork(source, { ...written, value }));
    const count = new Set(networks.map((network) => network?.family)).size;
    if (count < cidrs.length && !networks.includes(undefined)) {
      refuse(source, written, 'bad-cidr', { problem: 'families', field: written.name });
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
