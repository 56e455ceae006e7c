import {
  BundleMemo,
  makeBundle,
  type BundleTexts,
  type Bundle,
  type BundleContent,
  type BundleInputs,
} from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { FeatureGates } from '../kube-proxy/releases.ts';
import { mergeDiagnostics } from '../input/sort-diagnostics.ts';
import { checkNodesOf, hasErrors, type Request } from './compile.ts';
import { compileInputs, NodeMemo, settleInputs } from './compile-node.ts';
import type { Fleet } from './fleet-nodes.ts';
import { prepareForNodes } from './kubernetes-version.ts';
import { describeListenersOfNodes } from './localhost-listeners.ts';
import type { LoadedInputs } from './load-texts.ts';

/** A node of the fleet, whose bundle is not made yet. */
export interface FleetNode {
  readonly node: string;
  readonly inputs: BundleInputs;
  readonly gates: FeatureGates;
  /** The texts that the bundles have in common. */
  readonly texts: BundleTexts;
  readonly compile: () => FleetBundle;
}

/** One node's bundle. */
export interface FleetBundle {
  readonly bundle: Bundle;
  readonly content: BundleContent;
}

/** The bundles of many nodes, and all that there is to say of the input. */
export interface FleetCompilation {
  readonly diagnostics: readonly Diagnostic[];
  /** Undefined where a diagnostic is an error. */
  readonly nodes: Iterable<FleetNode> | undefined;
}

/** Compiles for many nodes what has been read and checked. */
export function compileFleet(
  loaded: LoadedInputs,
  fleet: Fleet,
  { refusals, namesMode, ...request }: Omit<Request, 'node'>,
): FleetCompilation {
  const { prepared, modeNote } = loaded;
  const { preparedFor, diagnostics: wrongVersions } = prepareForNodes(prepared, loaded.version, fleet.nodes);
  const found = checkNodesOf(loaded, { names: fleet.nodes, flag: fleet.named });
  const diagnostics = [
    ...refusals,
    ...fleet.diagnostics,
    ...wrongVersions,
    ...(modeNote && namesMode && !hasErrors(loaded.diagnostics) ? [modeNote] : []),
    ...mergeDiagnostics(found, loaded.diagnostics),
  ];
  if (hasErrors(diagnostics)) return { diagnostics, nodes: undefined };
  return {
    diagnostics: [...describeListenersOfNodes(prepared), ...diagnostics],
    nodes: settleNodes(fleet, preparedFor, request),
  };
}

function* settleNodes(
  { nodes, hostAddresses }: Fleet,
  preparedFor: ReturnType<typeof prepareForNodes>['preparedFor'],
  { ipFamily }: Pick<Request, 'ipFamily'>,
): Generator<FleetNode> {
  const nodeMemo = new NodeMemo();
  const bundleMemo = new BundleMemo();
  for (const nodeName of nodes) {
    const request = { nodeName, hostAddresses: hostAddresses.get(nodeName), ipFamily };
    const prepared = preparedFor(nodeName);
    const inputs = settleInputs(prepared, request);
    yield {
      node: nodeName,
      inputs,
      gates: prepared.gates,
      texts: bundleMemo,
      compile: () => {
        const content = compileInputs(prepared, inputs, nodeMemo);
        return { bundle: makeBundle(content, bundleMemo), content };
      },
    };
  }
}
