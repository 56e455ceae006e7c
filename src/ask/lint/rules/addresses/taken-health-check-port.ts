import { isServed, toNodePort, type LintRule } from '../../rule.ts';

/** Finds health check node ports that another Service also uses, as a health check node port or as a node port. */
export const takenHealthCheckPort: LintRule<'taken-health-check-port'> = {
  check: (input) => {
    const all = input.services.flatMap(({ name, ports }) => ports.map((port) => ({ name, port })));
    const nodePorts = new Map(
      all.filter(({ port }) => port.protocol === 'TCP').map((each) => [each.port.nodePort, each]),
    );
    const checks = new Map<number, string>();
    return input.services.flatMap(({ name, ports, source }) => {
      const port = ports.find(({ healthCheckNodePort }) => healthCheckNodePort !== 0)?.healthCheckNodePort;
      if (port === undefined) return [];
      const nodePort = nodePorts.get(port);
      const holder = nodePort?.name ?? checks.get(port);
      if (!checks.has(port)) checks.set(port, name);
      if (holder === undefined) return [];
      const taken = nodePort ? 'as-node-port' : 'as-health-check-port';
      return [
        {
          details: { taken, service: name, port, holder },
          place: source.place(['spec', 'healthCheckNodePort']),
          // In iptables mode, packets to a node port without endpoints reach the program that listens on the port.
          packet: nodePort && isServed(nodePort.port) ? toNodePort(nodePort.port, input) : undefined,
        },
      ];
    });
  },
};
