import { isName } from '../../base/names.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';
import { loadInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';

export async function proposeValues(
  of: string,
  typed: string,
  manifests: () => Promise<FileOptions | undefined>,
): Promise<readonly string[]> {
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
      return completeServices(await read(manifests), typed.replace('svc/', '')).map((name) => `svc/${name}`);
    case 'all':
    case 'describe what':
    case 'describe input':
      return completeServices(await read(manifests), typed);
    case 'node':
      return [...((await read(manifests))?.nodes.keys() ?? [])].filter((name) => isName(name, 'subdomain'));
    case 'namespace':
      return [...new Set(servicesIn(await read(manifests)).map(({ namespace }) => namespace))];
    default:
      return [];
  }
}

const senders = ['pod', 'remote-pod', 'node', 'external'];

function servicesIn(
  loaded: LoadedInputs | undefined,
): readonly { readonly namespace: string; readonly name: string }[] {
  return (loaded?.services ?? [])
    .map(({ object }) => object.metadata)
    .filter(({ namespace, name }) => isName(namespace, 'label') && isName(name, 'label'));
}

function completeServices(loaded: LoadedInputs | undefined, typed: string): readonly string[] {
  const services = servicesIn(loaded);
  const full = typed === '' ? [] : services.map(({ namespace, name }) => `${namespace}/${name}`);
  return [...new Set([...services.map(({ name }) => name), ...full])];
}

async function read(manifests: () => Promise<FileOptions | undefined>): Promise<LoadedInputs | undefined> {
  try {
    const options = await manifests();
    return options && (await loadInputs({ ...options, render: false, assume: true, skipInvalid: true }));
  } catch {
    // A command line that is still being typed is often wrong. kpc then offers no names and reports no error.
    return undefined;
  }
}
