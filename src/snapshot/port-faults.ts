import { count, joinWords } from '../base/printable.ts';
import { serviceName, type ShownPort } from '../cluster/model.ts';
import type { PortFault, Snapshot } from './snapshot.ts';

/** Faults in the endpoints of a Service port that the input shows. */
export function faultsOf(port: ShownPort, side: Snapshot): readonly PortFault[] {
  if (side.kind === 'dump') return [];
  return side.faultsOf(serviceName(port)).filter((fault) => {
    const { code, arguments: details } = fault;
    switch (code) {
      case 'selects-nothing':
      case 'no-ready-endpoint':
        return true;
      case 'unknown-port':
        return details.port === port.port && details.protocol === port.protocol;
      case 'undeclared-port':
        return details.port === `${targetOf(port, side)}/${port.protocol}`;
    }
  });
}

/** A Service port's target port as written; undefined if unknown. */
export function targetOf(port: ShownPort, side: Snapshot): number | string | undefined {
  const service = side.kind === 'dump' ? undefined : side.info(serviceName(port));
  return service?.ports.find((each) => each.name === port.portName && each.protocol === port.protocol)?.targetPort;
}

export function faultWords(fault: PortFault): string {
  switch (fault.code) {
    case 'selects-nothing':
      return 'its selector matches no Pod in the input';
    case 'no-ready-endpoint':
      return `the ${fault.arguments.owner ?? 'workload'} that it selects is scaled to 0`;
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

/** A clause on why a Service port has no ready endpoint; undefined if unknown. */
export function whyNoEndpoint(port: ShownPort, side: Snapshot): string | undefined {
  const fault = faultsOf(port, side).find(({ code }) => code !== 'undeclared-port');
  if (fault) return faultWords(fault);
  const { endpoints = [] } = port;
  if (endpoints.length === 0) return undefined;
  return endpoints.length === 1
    ? 'its endpoint is not ready'
    : `none of its ${count(endpoints.length, 'endpoint')} is ready`;
}
