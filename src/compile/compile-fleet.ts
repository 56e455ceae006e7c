import { BundleMemo } from '../bundle/bundle-texts.ts';
import { makeBundle, type Bundle, type BundleContent } from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { mergeDiagnostics } from '../input/sort-diagnostics.ts';
import { checkNodesOf, hasErrors, type Request } from './compile.ts';
import { compileNode, NodeMemo } from './compile-node.ts';
import type { Fleet } from './fleet-nodes.ts';
import { prepareForNodes } from './kubernetes-version.ts';
import { describeListenersOfNodes } from './localhost-listeners.ts';
import type { LoadedInputs } from './load-texts.ts';

/** One node's bundle. */
export interface FleetBundle {
  readonly node: string;
  readonly bundle: Bundle;
  readonly content: BundleContent;
}

/** The bundles of many nodes, and all that there is to say of the input. */
export interface FleetCompilation {
  readonly diagnostics: readonly Diagnostic[];
  /** Node by node, each as it is asked for; undefined where a diagnostic is an error. */
  readonly bundles: Iterable<FleetBundle> | undefined;
}

/** Compiles for many nodes what has been read and checked. */
export function compileFleet(
  loaded: LoadedInputs,
  fleet: Fleet,
  { refusals, namesMode, ...request }: Omit<Request, 'node'>,
): FleetCompilation {
  const { prepared, modeNote } = loaded;
  const { preparedFor, diagnostics: wrongVersions } = prepareForNodes(prepared, loaded.version, fleet.nodes);
  const isTold = (name: string) => fleet.hostAddresses.has(name);
  const found = checkNodesOf(loaded, { names: fleet.nodes, flag: fleet.named, isTold });
  const diagnostics = [
    ...refusals,
    ...fleet.diagnostics,
    ...wrongVersions,
    ...(modeNote && namesMode && !hasErrors(loaded.diagnostics) ? [modeNote] : []),
    ...mergeDiagnostics(found, loaded.diagnostics),
  ];
  if (hasErrors(diagnostics)) return { diagnostics, bundles: undefined };
  return {
    diagnostics: [...describeListenersOfNodes(prepared), ...diagnostics],
    bundles: compileNodes(fleet, preparedFor, request),
  };
}

function* compileNodes(
  { nodes, hostAddresses }: Fleet,
  preparedFor: ReturnType<typeof prepareForNodes>['preparedFor'],
  { ipFamily }: Pick<Request, 'ipFamily'>,
): Generator<FleetBundle> {
  const nodeMemo = new NodeMemo();
  const bundleMemo = new BundleMemo();
  for (const nodeName of nodes) {
    const request = { nodeName, hostAddresses: hostAddresses.get(nodeName), ipFamily };
    const content = compileNode(preparedFor(nodeName), request, nodeMemo);
    yield { node: nodeName, bundle: makeBundle(content, bundleMemo), content };
  }
}
