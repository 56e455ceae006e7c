import { findNearest } from '../../base/find-nearest.ts';
import { oneOfEachFamily } from '../../diagnostics/fields.ts';
import { text } from '../../diagnostics/json-schema.ts';
import { isInterfaceName, isInterfacePrefix } from '../../base/object-names.ts';
import { printable } from '../../base/printable.ts';
import { listOf, objectOf, text as storedText, variantOf, type Shaped } from '../../base/json-shape.ts';
import { parseNetwork } from '../../kernel/address.ts';
import { readNetwork } from './kinds.ts';
import { given, plainSetting, proxyField, proxyFlag, refuseValue, setting, type SettingSource } from './setting.ts';

const modeFlag = proxyFlag(
  'text',
  '--detect-local-mode <mode>',
  'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
);
const modeField = proxyField('detectLocalMode', text);
const bridgeFlag = proxyFlag('text', '--pod-bridge-interface <name>', 'the bridge of the pods, for BridgeInterface');
const bridgeField = proxyField('detectLocal.bridgeInterface', text);
const prefixFlag = proxyFlag(
  'text',
  '--pod-interface-name-prefix <prefix>',
  "the prefix of the pods' interface names, for InterfaceNamePrefix",
);
const prefixField = proxyField('detectLocal.interfaceNamePrefix', text);

const variants = {
  ClusterCIDR: objectOf<object>({}),
  NodeCIDR: objectOf<object>({}),
  BridgeInterface: objectOf({ bridgeInterface: storedText }),
  InterfaceNamePrefix: objectOf({ interfaceNamePrefix: storedText }),
};
const storedDetectLocal = variantOf('mode', variants);

/** How kube-proxy recognises the traffic of the node's own Pods. */
type DetectLocal = Shaped<typeof storedDetectLocal>;

const detectLocalModes = Object.keys(variants) as readonly DetectLocal['mode'][];

/** How kube-proxy recognises local traffic; the default is ClusterCIDR. */
export const detectLocal = setting({
  flags: [modeFlag, bridgeFlag, prefixFlag],
  fields: [modeField, bridgeField, prefixField],
  defaultIn: (): DetectLocal => ({ mode: 'ClusterCIDR' }),
  read: (source) => {
    const written = given(source, modeFlag, modeField);
    const mode = detectLocalModes.find((known) => known === written?.value);
    if (mode || !written?.value) return mode && readDetectLocal(source, mode);
    const expected = findNearest(written.value, detectLocalModes) ?? `one of ${detectLocalModes.join(', ')}`;
    return refuseValue(source, written, expected);
  },
  stored: storedDetectLocal,
  must: {
    text: 'name an interface',
    isMet: (value) => {
      switch (value.mode) {
        case 'BridgeInterface':
          return isInterfaceName(value.bridgeInterface);
        case 'InterfaceNamePrefix':
          return isInterfacePrefix(value.interfaceNamePrefix);
        case 'ClusterCIDR':
        case 'NodeCIDR':
          return true;
      }
    },
  },
});

function readDetectLocal(source: SettingSource, mode: DetectLocal['mode']): DetectLocal {
  switch (mode) {
    case 'BridgeInterface': {
      const bridgeInterface = given(source, bridgeFlag, bridgeField)?.value ?? '';
      if (!isInterfaceName(bridgeInterface)) refuseInterface(source, mode, bridgeInterface, 15);
      return { mode, bridgeInterface };
    }
    case 'InterfaceNamePrefix': {
      const interfaceNamePrefix = given(source, prefixFlag, prefixField)?.value ?? '';
      if (!isInterfacePrefix(interfaceNamePrefix)) refuseInterface(source, mode, interfaceNamePrefix, 14);
      return { mode, interfaceNamePrefix };
    }
    case 'NodeCIDR':
    case 'ClusterCIDR':
      return { mode };
    default:
      return mode satisfies never;
  }
}

function refuseInterface(
  source: SettingSource,
  mode: 'BridgeInterface' | 'InterfaceNamePrefix',
  value: string,
  most: 14 | 15,
): void {
  const { field, flag } = {
    BridgeInterface: { field: bridgeField, flag: bridgeFlag },
    InterfaceNamePrefix: { field: prefixField, flag: prefixFlag },
  }[mode];
  const isConfigured = source.hasSection('detectLocal');
  const { path } = isConfigured ? field : modeField;
  const name = isConfigured ? field.name : flag.name;
  const because = `detectLocalMode ${mode} needs an interface`;
  refuseValue(source, { name, value, path }, `at most ${most} bytes without blanks, quotes, slashes and *`, {
    because,
  });
}

/** At most one of each family. kube-proxy checks them only in mode ClusterCIDR, and so does kpc. */
export const clusterCIDRs = plainSetting({
  flag: proxyFlag('text', '--cluster-cidr <cidrs>', "the pods' CIDRs: other traffic to cluster IPs is masqueraded"),
  field: proxyField('clusterCIDR', text),
  defaultIn: (): readonly string[] => [],
  read: (written, source) => {
    // An empty field is not set. An empty flag is one empty CIDR.
    if (written.value === '' && written.path) return undefined;
    const cidrs = written.value.split(',');
    const localMode = given(source, modeFlag, modeField)?.value;
    if (detectLocalModes.some((mode) => mode === localMode && mode !== 'ClusterCIDR')) {
      return written.value === '' ? undefined : cidrs;
    }
    const networks = cidrs.map((value) => readNetwork({ ...written, value }, source));
    const count = new Set(networks.map((network) => network?.family)).size;
    if (count < cidrs.length && !networks.includes(undefined)) {
      refuseValue(source, written, oneOfEachFamily);
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
