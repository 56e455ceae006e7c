import { codes } from '#codes';
import { findingCodes } from '../../base/findings/codes.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';
import { loadInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import type { Prepared } from '../../snapshot/open/compile-node.ts';
import { isName } from '../../base/object-names.ts';
import type { Candidate, ValueRequest } from '../shared/completion.ts';
import { applyKpcYaml, isConfigured } from './kpc-yaml.ts';

/** Completes values that only kpc has: codes, modes, releases, and names in the manifests of -f or kpc.yaml. */
export async function findKpcValues(request: ValueRequest): Promise<readonly Candidate[]> {
  const { of, typed } = request;
  if (of === 'explain code' || of === 'ignore')
    return findingCodes.map((value) => ({ value, help: codes[value].meaning }));
  return (await valuesOf(of, typed, request)).map((value) => ({ value }));
}

async function valuesOf(of: string, typed: string, request: ValueRequest): Promise<readonly string[]> {
  switch (of) {
    case 'proxyMode':
    case 'equivalence from':
    case 'equivalence to':
      return proxyModes;
    case 'kubernetesVersion':
    case 'toKubernetesVersion':
      return releases;
    case 'from':
      return senders;
    case 'to':
      return servicesOf(await readManifests(request), typed.replace('svc/', '')).map((name) => `svc/${name}`);
    case 'all':
    case 'describe what':
    case 'describe input':
      return servicesOf(await readManifests(request), typed);
    case 'node':
      return [...((await readManifests(request))?.nodes.keys() ?? [])].filter((name) => isName(name, 'subdomain'));
    case 'namespace':
      return [...new Set(servicesIn(await readManifests(request)).map(({ namespace }) => namespace))];
    default:
      return [];
  }
}

const senders = ['pod', 'remote-pod', 'node', 'external'];

function servicesIn(prepared: Prepared | undefined): readonly { readonly namespace: string; readonly name: string }[] {
  return (prepared?.services ?? [])
    .map(({ object }) => object.metadata)
    .filter(({ namespace, name }) => isName(namespace, 'label') && isName(name, 'label'));
}

/** Services by their names, and with their namespaces as soon as anything is typed. */
function servicesOf(prepared: Prepared | undefined, typed: string): readonly string[] {
  const services = servicesIn(prepared);
  const full = typed === '' ? [] : services.map(({ namespace, name }) => `${namespace}/${name}`);
  return [...new Set([...services.map(({ name }) => name), ...full])];
}

/** Reads the manifests that earlier words name, or else kpc.yaml; undefined if that fails. */
async function readManifests({ program, called, before }: ValueRequest): Promise<Prepared | undefined> {
  if (!isConfigured(called.name())) return undefined;
  try {
    const { operands } = called.parseOptions([...before]);
    applyKpcYaml(called, program, called.opts<{ readonly kpcYaml?: string }>().kpcYaml);
    const options = called.opts<FileOptions>();
    const file = [...(options.file ?? []), ...operands].filter((path) => path !== '-');
    if (file.length === 0) return undefined;
    return (await loadInputs({ ...options, file, render: false, assume: true, skipInvalid: true })).prepared;
  } catch {
    // A line that is not finished is often wrong: the shell then offers nothing, and says nothing.
    return undefined;
  }
}
