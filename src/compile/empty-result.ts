import { isLeftToOther, skipReason } from '../cluster/build-cluster.ts';
import { fullName, type Service } from '../cluster/objects.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { leftOutReasons, type LeftOutReason } from '../diagnostics/objects.ts';
import { findOutermost } from '../input/files/beside-manifests.ts';
import { readsManifests, type Inputs } from '../input/read-inputs.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Prepared } from './compile-node.ts';
import type { IpFamilyChoice } from './choose-families.ts';

/** What says whether a result may be empty. */
export interface EmptyResultOptions {
  /**
   * Whether a result that programs no Service may be written; undefined for what only shows Services. `of-a-cluster`: with a
   * warning, if the input holds Nodes and nothing that asks for Services, and so can be all that a cluster has.
   */
  readonly emptyResult?: 'refused' | 'of-a-cluster' | 'allowed' | undefined;
  readonly ipFamily: IpFamilyChoice;
  /** The command to pipe rendered manifests into. */
  readonly into?: string | undefined;
}

/**
 * What to say if no Service is programmed: putting such a result into a node removes all Services from it. That is an error in
 * what is written, unless it is allowed.
 */
export function describeEmptiness(
  inputs: Inputs,
  prepared: Prepared,
  { emptyResult, ipFamily, into }: EmptyResultOptions,
): readonly Diagnostic[] {
  const { services, skipped, diagnostics, nodes, pods, workloads } = inputs;
  // What could not be read may have been a Service.
  if (emptyResult === 'allowed' || diagnostics.some(isError)) return [];
  const hasApplications = skipped.size > 0 || pods.length > 0 || workloads.length > 0;
  const isOfCluster = emptyResult === 'of-a-cluster' && nodes.length > 0 && (services.length > 0 || !hasApplications);
  const isRefused = emptyResult !== undefined && !isOfCluster;
  if (services.length > 0) {
    if (emptyResult === undefined || prepared.diagnostics.some(isError)) return [];
    const takesAll = ipFamily === 'auto' || ipFamily === 'dual';
    const isProgrammed = prepared.cluster.servicePorts.some(({ family }) => takesAll || family === ipFamily);
    return isProgrammed ? [] : [describeNothing(prepared, isRefused)];
  }
  const { slices, endpoints, serviceCidrs, configs, facts } = inputs;
  const others = [nodes, pods, workloads, slices, endpoints, serviceCidrs, configs, facts];
  const holdsObjects = skipped.size > 0 || others.some(({ length }) => length > 0);
  const unbuilt = findOutermost([...inputs.files.keys()]);
  if (skipped.has('Kustomization') || (unbuilt !== undefined && !holdsObjects)) {
    const build = `kubectl kustomize ${unbuilt ?? 'FOLDER'} | ${into ?? readsManifests}`;
    return [diagnose('no-input', { problem: 'kustomization', build })];
  }
  // What looks like a misspelled Service would be taken off the node.
  const isMisspelled = diagnostics.some(({ code }) => code === 'unknown-kind');
  if (!holdsObjects && !isMisspelled) return [diagnose('no-input', { problem: 'no-objects' })];
  return [diagnose('nothing-programmed', { services: 0, leftOut: [], isRefused })];
}

/** Services are there, and kube-proxy programs nothing for any of them. */
function describeNothing({ services, cluster }: Prepared, isRefused: boolean): Diagnostic {
  const watched = new Set(cluster.services.map(fullName));
  const leftOut = leftOutReasons.flatMap((reason) => {
    const names = services
      .filter(({ object }) => leftOutReason(object, watched.has(fullName(object.metadata))) === reason)
      .map(({ object }) => fullName(object.metadata))
      .toSorted(compareText);
    return names.length === 0 ? [] : [{ reason, services: names }];
  });
  return diagnose('nothing-programmed', { services: services.length, leftOut, isRefused });
}

function leftOutReason(service: Service, isWatched: boolean): LeftOutReason {
  if (!isWatched) return isLeftToOther(service) ? 'other-proxy' : 'headless-label';
  return skipReason(service) ?? (service.spec.ports.length === 0 ? 'no-ports' : 'other-family');
}
