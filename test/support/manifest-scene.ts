import { wordsOf } from '../../src/say/words/words.ts';
import { loadTexts, type LoadOptions } from '../../src/snapshot/open/load-texts.ts';
import { isError } from '../../src/base/findings/finding.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { openManifests } from '../../src/snapshot/open/stored-side.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { judgePolicies, type PolicyFinding } from '../../src/ask/trace/network-policies.ts';

/** Returns the scene of a node with these manifests, in nftables mode unless `more` names another mode. */
export function sceneOfManifests(
  text: string,
  node: string,
  more: Pick<LoadOptions, 'proxyMode' | 'assume'> = {},
): Scene {
  const manifests = { files: [new TextFile('in.yaml', text)], diagnostics: [] };
  const options = { traffic: true, proxyMode: 'nftables', ipFamily: 'auto', node, ...more } as const;
  const loaded = loadTexts({ manifests, config: undefined, hostAddresses: undefined }, options);
  const { side, diagnostics } = openManifests('in.yaml', loaded, options).at('');
  const errors = diagnostics.filter(isError).map((each) => wordsOf(each).text);
  if (!side || errors.length > 0) throw new Error(errors.join('\n'));
  return sceneOf(side);
}

export interface Connection {
  readonly from: string;
  readonly to: string;
  readonly protocol: 'tcp' | 'udp' | 'sctp' | 'icmp';
}

export function findPolicies(scene: Scene, connection: Connection): readonly PolicyFinding[] {
  const answer = ask({ ...connection, inInterface: undefined, namespace: undefined }, scene);
  if (answer.kind === 'wrong') throw new Error(answer.faults.map(({ diagnostic }) => diagnostic.code).join('\n'));
  return judgePolicies(answer.value, scene);
}
