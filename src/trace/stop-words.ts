import { externalPolicyOf, internalPolicyOf } from '../cluster/plan-traffic.ts';
import { serviceName, type ShownPort } from '../cluster/model.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { Step } from '../packet/step.ts';
import type { Trace } from './question.ts';
import { whereOf } from './reason-words.ts';
import { addressKind, portAt } from './port-at.ts';
import type { Scene } from './scene.ts';
import { stopOf, type Stop } from './stop.ts';

/** Why a packet is dropped or refused; or what policy Local does with one that is delivered. */
export function causeNote(trace: Trace, scene: Scene): string | undefined {
  const fate = trace.fate.otherwise ?? trace.fate;
  const stop = stopOf(fate);
  const port = portAt(trace.target, scene.side.ports);
  if (stop) return stopWords(stop, port, trace, scene);
  if (fate.verdict !== 'delivered' || !port || !scene.side.mode || !isLocalElsewhere(port, trace, scene))
    return undefined;
  return `${noLocalWords(port, trace)}: ${modeFacts[scene.side.mode].title} sends it to endpoints on other nodes`;
}

function stopWords(stop: Stop, port: ShownPort | undefined, trace: Trace, scene: Scene): string | undefined {
  switch (stop.kind) {
    case 'no-endpoints':
      return port && `${port.label} has no ready endpoint`;
    case 'no-local-endpoints':
      return port && noLocalWords(port, trace);
    case 'no-server':
      return port && noServerWords(port, trace, scene);
    case 'source-ranges':
      return port && rangesWords(port, trace);
    case 'unserved-port':
      return port ? undefined : unservedPortWords(trace, scene);
    case 'unserved-address':
      return `no Service has ${trace.target.address.text}, and ${titleOf(scene)} drops what goes to unused cluster IPs`;
    case 'kernel':
      return stop.decision === 'own-address'
        ? 'the endpoint is the sender itself, which gets a packet from its own address and cannot answer'
        : undefined;
    case 'stranger':
      return strangerWords(stop.step);
    case 'kube-proxy':
      return undefined;
  }
}

/** The mode of a node in words; kube-proxy, where nothing shows it. */
function titleOf({ side: { mode } }: Scene): string {
  return mode ? modeFacts[mode].title : 'kube-proxy';
}

function isInternal(port: ShownPort, { target }: Trace): boolean {
  return addressKind(port, target.address) === 'cluster-ip';
}

function noLocalWords(port: ShownPort, trace: Trace): string {
  const policy = isInternal(port, trace) ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
  return `${policy} is Local, and ${port.label} has no endpoint on this node`;
}

/** Whether the policy is Local, and all endpoints are known to be on other nodes. */
function isLocalElsewhere(port: ShownPort, trace: Trace, { side: { endpoints: known } }: Scene): boolean {
  const { endpoints = [] } = port;
  const policy = isInternal(port, trace) ? internalPolicyOf(port) : externalPolicyOf(port);
  const isElsewhere = endpoints.every((endpoint) => known.get(endpoint.label)?.isLocal === false);
  return policy === 'Local' && endpoints.length > 0 && isElsewhere;
}

/** IPVS mode has a virtual server without real servers, whichever endpoints the Service has elsewhere. */
function noServerWords(port: ShownPort, trace: Trace, scene: Scene): string {
  if (isLocalElsewhere(port, trace, scene)) return noLocalWords(port, trace);
  const isKnown =
    scene.side.kind !== 'dump' || (scene.side.mode && !modeFacts[scene.side.mode].kinds.has('virtualServers'));
  return `${port.label} has no ready endpoint${isKnown ? '' : ', or policy Local and none on this node'}`;
}

function rangesWords({ label, sourceRanges = [] }: ShownPort, { sender }: Trace): string {
  const named = sourceRanges.map(({ text }) => text).join(', ');
  const ranges = `loadBalancerSourceRanges of ${label}${named === '' ? '' : ` (${named})`}`;
  return `${ranges} do not include ${sender.address?.text ?? 'the address of the node'}`;
}

/** What kube-proxy refuses at the cluster IP of a Service. */
function unservedPortWords({ target }: Trace, scene: Scene): string | undefined {
  const { address, port, protocol } = target;
  const own = scene.side.ports.filter((each) => addressKind(each, address) !== undefined);
  const [first] = own;
  if (!first) return undefined;
  if (protocol === 'icmp') return `${titleOf(scene)} refuses pings of ${address.text}`;
  const has = own.map((each) => `${each.port}/${each.protocol}`).join(', ');
  return `${address.text} belongs to ${serviceName(first)}, which has no port ${port}/${protocol.toUpperCase()} (has ${has})`;
}

function strangerWords(step: Step & { readonly kind: 'rule' | 'policy' }): string {
  if (step.kind === 'policy') return `the policy of ${step.tool} ${step.table} ${step.chain} drops it, not kube-proxy`;
  return `${whereOf(step)} ${step.action.kind === 'reject' ? 'refuses' : 'drops'} it, not kube-proxy`;
}
