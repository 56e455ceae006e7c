/** A program that collects data for a support team. The patterns match paths that are relative to the bundle's folder. */
interface Collector {
  readonly files: readonly RegExp[];
  readonly manifests?: RegExp;
}

const collectors: readonly Collector[] = [
  // The EKS log collector.
  {
    files: [
      /^networking\/ip6?tables(?:-save|-nat|-filter|-mangle)?\.txt$/,
      /^networking\/(?:ipvsadm|ipset|conntrack6?)\.txt$/,
      /^networking\/ip6?(?:route|rule)\.txt$/,
      /^sysctls\/sysctl_all\.txt$/,
      /^var_log\/(?:kube-system_)?kube-proxy[^/]*(?:\/kube-proxy\/\d+)?\.log$/,
    ],
  },
  // sosreport.
  {
    files: [
      /^sos_commands\/(?:firewall_tables|networking)\/ip6?tables_(?:-t_[a-z]+_-nvL|-vnxL)$/,
      /^sos_commands\/(?:firewall_tables|networking)\/nft_(?:-a_)?list_ruleset$/,
      /^sos_commands\/networking\/ip_(?:-d_address|-o_addr)$/,
      /^sos_commands\/networking\/ip_(?:-6_)?route_show_table_all$/,
      /^sos_commands\/networking\/ip_(?:-[46]_)?rule(?:_list|_show)?$/,
      /^sos_commands\/ipvs\/ipvsadm_-Ln$/,
      /^sos_commands\/(?:conntrack|networking)\/conntrack_-L(?:_-o_extended)?$/,
      /^sos_commands\/kernel\/sysctl_-a$/,
      /^var\/log\/pods\/kube-system_kube-proxy[^/]*\/kube-proxy\/\d+\.log$/,
    ],
    manifests: /^sos_commands\/kubernetes\/cluster-info\/(?:[^/]+\/)?kubectl_[^/]*_-o_json_/,
  },
  // Rancher's log collector.
  {
    files: [
      /^networking\/ip6?tables(?:save|nat|mangle)?$/,
      /^networking\/(?:nft_ruleset|ipvsadm|ipaddrshow|iproute|iprule)$/,
      /^systeminfo\/sysctla$/,
      /^(?:k8s|rke|k3s|rke2|kubeadm)\/(?:containerlogs\/kube-proxy|podlogs\/kube-system[-_]kube-proxy[^/]*(?:\/kube-proxy\/\d+\.log)?)$/,
    ],
  },
];

export function bundleOfPath(path: string) {
  for (const folder of ['', path.slice(0, path.indexOf('/') + 1)]) {
    const inside = path.slice(folder.length);
    for (const { files, manifests } of collectors) {
      const isManifest = manifests?.test(inside) === true;
      if (isManifest || files.some((file) => file.test(inside))) return { folder, isManifest };
    }
  }
  return undefined;
}
