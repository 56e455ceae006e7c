import { wordsOf } from '../../src/say/words/words.ts';
import { describe, expect, test } from 'vitest';
import { manifest } from '#checks';
import { optional, type Schema, type Schemas } from '../../src/base/json/schema.ts';
import { readChecked, type Check } from '../../src/base/json/check.ts';
import { kubeProxyConfigurationSchema } from '../../src/input/objects/shapes/kube-proxy-configuration.ts';
import { resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { modeHistories, newestRelease } from '../../src/kube-proxy/releases.ts';
import { proxyModes } from '../../src/kube-proxy/modes.ts';
import {
  listSettings,
  type ProxyFlags,
  defaultSettings,
  findWrongSettings,
  settingsOver,
  hasProxyFlags,
  proxyFlags,
} from '../../src/settings/table.ts';

const settings = listSettings();

function propertiesOf(schema: Schema | undefined): Schemas {
  return (schema?.['properties'] ?? {}) as Schemas;
}

test('no two settings share a flag or a field, except that feature gates are one field', () => {
  const flags = proxyFlags.map(({ name }) => name);
  expect(flags.length).toBeGreaterThan(20);
  expect(new Set(flags).size).toBe(flags.length);
  const fields = settings.flatMap(({ row }) => row.fields.map(({ name }) => name));
  const [gates, others] = [
    fields.filter((name) => name === 'featureGates'),
    fields.filter((name) => name !== 'featureGates'),
  ];
  expect(gates.length).toBeGreaterThan(1);
  expect(new Set(others).size).toBe(others.length);
});

test('each field is in the schema of the configuration', () => {
  for (const { row } of settings) {
    for (const { path, schema } of row.fields) {
      const [section = '', own] = path;
      const found = propertiesOf(kubeProxyConfigurationSchema)[section];
      expect(own === undefined ? found : propertiesOf(found)[own], path.join('.')).toEqual(optional(schema));
    }
  }
});

describe.each(proxyModes)('mode %s', (mode) => {
  const release = modeHistories[mode].until ?? newestRelease;

  test('the defaults are what a manifest may hold', () => {
    expect(readChecked(manifest.fields?.['settings'] as Check, defaultSettings(mode))).toHaveProperty('value');
    expect(findWrongSettings(defaultSettings(mode))).toEqual([]);
  });

  test('the defaults are what is read where nothing is set', () => {
    const { settings: read, diagnostics } = resolveSettings(undefined, { proxyMode: mode }, release);
    expect(diagnostics).toEqual([]);
    expect(read).toEqual({ ...defaultSettings(mode), release });
  });

  test('flags override only what they name, and what is left at the default of another mode follows the mode', () => {
    for (const other of proxyModes) {
      const flags = { nodeportAddresses: '10.0.0.0/8', ipvsScheduler: 'mh' };
      const { settings: own } = resolveSettings(undefined, { proxyMode: other, ...flags });
      const base = { ...defaultSettings(mode), clusterCIDRs: ['10.244.0.0/16'] };
      const named = { nodePortAddresses: ['10.0.0.0/8'], ipvs: { ...base.ipvs, scheduler: 'mh' } };
      expect(settingsOver(base, own, flags)).toEqual({ ...base, ...named });
      const moved = { ...defaultSettings(other), clusterCIDRs: base.clusterCIDRs };
      expect(settingsOver(base, own, { proxyMode: other })).toEqual(moved);
    }
  });
});

test.each(proxyFlags.map(({ key }) => key))('--%s counts as a flag of kube-proxy', (key) => {
  expect(hasProxyFlags({ [key]: '' } as ProxyFlags)).toBe(true);
  expect(hasProxyFlags({ [key]: undefined } as ProxyFlags)).toBe(false);
});

test('other flags do not count as kube-proxy’s', () => {
  expect(hasProxyFlags({ node: 'worker-1', file: ['a.yaml'] } as ProxyFlags)).toBe(false);
});

describe('a value that cannot be read is told with the name of its flag', () => {
  // Any text is a name of a mode or a bridge that is wrong in its own words, or a list of gates.
  const anyText = new Set(['podBridgeInterface', 'podInterfaceNamePrefix']);
  test.each(proxyFlags.filter(({ key }) => !anyText.has(key)).map(({ name, key }) => [name, key]))(
    '%s',
    (name, key) => {
      const { diagnostics } = resolveSettings(undefined, { proxyMode: 'ipvs', [key]: '*' });
      expect(diagnostics.map((each) => `${each.severity} ${wordsOf(each).text}`)).toEqual([
        expect.stringMatching(new RegExp(`^error ${name} (?:cannot be |is )?"\\*"`)),
      ]);
    },
  );
});
