import type { IpFamilyChoice } from '../../snapshot/open/choose-families.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { Family } from '../../kernel/family.ts';
import { isArrival, type PacketProtocol } from '../../packet/packet.ts';
import { openManifests } from '../../snapshot/open/opened.ts';
import { packetOf, readSender, type Sender } from '../trace/question.ts';
import { sceneOf, type Scene } from '../trace/scene.ts';
import type { PacketClaim, PacketEnd } from './rule.ts';

/** How the packet of a claim ends, as kpc trace says of the same input; undefined if that has no answer. */
export type TracePacket = (claim: PacketClaim) => PacketEnd | undefined;

/** Returns a function that traces packets. It compiles each node that it is asked about, once. */
export function packetTracer(loaded: LoadedInputs, ipFamily: IpFamilyChoice): TracePacket {
  const opened = openManifests('-f', loaded, { ipFamily });
  const scenes = new Map<string, Scene | undefined>();
  const senders = new Map<string, Sender | undefined>();
  const sceneAt = (node: string): Scene | undefined => {
    if (!scenes.has(node)) {
      const { side } = opened.at(node);
      scenes.set(node, side && sceneOf(side));
    }
    return scenes.get(node);
  };
  const senderAt = (scene: Scene, { from, node }: PacketClaim, family: Family): Sender | undefined => {
    const key = `${from} ${family} ${node}`;
    if (!senders.has(key)) {
      const read = readSender({ from, inInterface: undefined, namespace: undefined }, family, scene);
      senders.set(key, read.kind === 'read' ? read.value : undefined);
    }
    return senders.get(key);
  };
  return (claim) => {
    const scene = sceneAt(claim.node);
    const sender = scene && senderAt(scene, claim, claim.to.family);
    if (!scene || !sender) return undefined;
    const protocol = claim.protocol.toLowerCase() as PacketProtocol;
    const fate = scene.evaluate(packetOf(sender, { address: claim.to, port: claim.port, protocol, label: undefined }));
    const { verdict } = fate;
    if (isArrival(verdict) && fate.connection().kind === 'fails') return 'fails';
    return verdict === 'unknown' ? undefined : verdict;
  };
}
