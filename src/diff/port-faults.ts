import { count } from '../base/format-count.ts';
import { serviceName, type ShownPort } from '../cluster/model.ts';
import { joinWords } from '../base/join-words.ts';
import type { PortFault, Snapshot } from '../snapshot/snapshot.ts';

/** What the input shows to be wrong with the endpoints of a Service port. */
export function faultsOf(port: ShownPort, side: Snapshot): readonly PortFault[] {
  if (side.kind === 'dump') return [];
  return side.faultsOf(serviceName(port)).filter((fault) => {
    const { code, arguments: details } = fault;
    switch (code) {
      case 'selects-nothing':
        return true;
      case 'unknown-port':
        return details.port === port.port && details.protocol === port.protocol;
      case 'undeclared-port':
        return details.port === `${targetOf(port, side)}/${port.protocol}`;
    }
  });
}

/** The port of the Pods that a Service port leads to, as it is written; undefined where nothing shows it. */
export function targetOf(port: ShownPort, side: Snapshot): number | string | undefined {
  const service = side.kind === 'dump' ? undefined : side.info(serviceName(port));
  return service?.ports.find((each) => each.name === port.portName && each.protocol === port.protocol)?.targetPort;
}

/** A fault as a clause. */
export function faultWords(fault: PortFault): string {
  switch (fault.code) {
    case 'selects-nothing':
      return 'its selector matches no Pod in the input';
    case 'unknown-port': {
      const { owner, protocol, name, found } = fault.arguments;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${name}`;
      return `${owner} has a ${what}${found.length === 0 ? '' : ` (they have ${joinWords(found)})`}`;
    }
    case 'undeclared-port': {
      const { port, owner, ports } = fault.arguments;
      return `no container that it selects lists ${port} (${owner} lists ${joinWords(ports)})`;
    }
  }
}

/** Why a Service port has no endpoint that is ready: a clause; undefined where nothing shows it. */
export function whyNoEndpoint(port: ShownPort, side: Snapshot): string | undefined {
  const fault = faultsOf(port, side).find(({ code }) => code !== 'undeclared-port');
  if (fault) return faultWords(fault);
  const { endpoints = [] } = port;
  if (endpoints.length === 0) return undefined;
  return endpoints.length === 1
    ? 'its endpoint is not ready'
    : `none of its ${count(endpoints.length, 'endpoint')} is ready`;
}
