import { hashHex } from '#hash';
import { build } from '../../base/version.ts';
import { writeNode, writeServiceCidrs } from '../manifest.ts';
import type { BundleTexts } from '../bundle-texts.ts';
import type { BundleInputs } from '../make-bundle.ts';

/**
 * The SHA-256 of all that a node's bundle is made of: of the same, the same program makes the same bundle. services.json holds
 * all that is compiled of Services and endpoints: kpc-apply compiles a bundle again from that, the node and the settings.
 */
export function hashInputs(inputs: BundleInputs, gates: ReadonlyMap<string, boolean>, texts: BundleTexts): string {
  const { cluster, node, ...others } = inputs;
  const services = texts.digest('services.json', texts.writeServices(cluster));
  const serviceCidrs = writeServiceCidrs(cluster);
  return hashHex(
    JSON.stringify({ build, services, serviceCidrs, node: writeNode(node), gates: [...gates], ...others }),
  );
}
