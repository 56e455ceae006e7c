// Draws how a new connection to a Service passes a node in each mode, and how kpc is built, for docs/. A test draws the pictures again
// and looks for each name in what kpc compiles. UPDATE_DOCS=1 writes the files.
// @ts-check

/**
 * @typedef {{ name: string, text: string }} Part
 * @typedef {{ hook: string, table?: string, parts: Part[] }} Stop
 * @typedef {{ file: string, mode: 'iptables' | 'ipvs' | 'nftables', title: string, stops: Stop[] }} PacketWay
 */

/** @type {PacketWay[]} */
export const packetWays = [
  {
    file: 'docs/packet-way-iptables.svg',
    mode: 'iptables',
    title: 'iptables mode: a new connection to a Service',
    stops: [
      {
        hook: 'prerouting, or output from the node itself',
        table: 'nat',
        parts: [
          { name: 'KUBE-SERVICES', text: 'finds the Service, rule by rule' },
          { name: 'KUBE-NODEPORTS', text: 'finds it by node port, if the address is the node’s own' },
          { name: 'KUBE-EXT-…', text: 'not for cluster IPs: marks the packet, or applies policy Local' },
          { name: 'KUBE-SVC-…', text: 'chooses an endpoint by chance; KUBE-SVL-… one on this node' },
          { name: 'KUBE-SEP-…', text: 'one endpoint: DNAT writes its address into the packet' },
        ],
      },
      { hook: 'routing', parts: [{ name: '', text: 'The endpoint’s address says where the packet goes.' }] },
      {
        hook: 'forward',
        table: 'filter',
        parts: [
          { name: 'KUBE-PROXY-FIREWALL', text: 'drops what load balancer source ranges leave out' },
          { name: 'KUBE-FORWARD', text: 'accepts marked packets' },
          { name: 'KUBE-SERVICES', text: 'rejects cluster IPs without endpoints' },
          { name: 'KUBE-EXTERNAL-SERVICES', text: 'rejects or drops other addresses without endpoints' },
        ],
      },
      {
        hook: 'postrouting',
        table: 'nat',
        parts: [{ name: 'KUBE-POSTROUTING', text: 'marked packets leave with the node’s address as source' }],
      },
    ],
  },
  {
    file: 'docs/packet-way-ipvs.svg',
    mode: 'ipvs',
    title: 'IPVS mode: a new connection to a Service',
    stops: [
      {
        hook: 'prerouting, or output from the node itself',
        table: 'nat',
        parts: [
          { name: 'KUBE-SERVICES', text: 'looks the address up in sets such as KUBE-CLUSTER-IP' },
          { name: 'KUBE-NODE-PORT', text: 'looks the node port up in sets such as KUBE-NODE-PORT-TCP' },
          { name: 'KUBE-MARK-MASQ', text: 'marks what must leave with the node’s address' },
        ],
      },
      {
        hook: 'routing',
        parts: [{ name: 'kube-ipvs0', text: 'has the address of every Service: the packet is for this node' }],
      },
      {
        hook: 'input',
        table: 'filter',
        parts: [
          { name: 'KUBE-IPVS-FILTER', text: 'rejects ports that no Service has, on addresses of Services' },
          { name: 'KUBE-PROXY-FIREWALL', text: 'drops what load balancer source ranges leave out' },
        ],
      },
      {
        hook: 'input',
        table: 'IPVS',
        parts: [
          { name: 'virtual server', text: 'chooses a real server by its scheduler, such as rr' },
          { name: 'real server', text: 'an endpoint: its address is written into the packet' },
        ],
      },
      {
        hook: 'postrouting',
        table: 'nat',
        parts: [
          { name: 'KUBE-POSTROUTING', text: 'marked packets, and those in KUBE-LOOP-BACK, leave with' },
          { name: '', text: 'the node’s address as source' },
        ],
      },
    ],
  },
  {
    file: 'docs/packet-way-nftables.svg',
    mode: 'nftables',
    title: 'nftables mode: a new connection to a Service',
    stops: [
      {
        hook: 'prerouting, or output from the node itself',
        table: 'filter, before DNAT',
        parts: [{ name: 'firewall-check', text: 'drops what load balancer source ranges leave out' }],
      },
      {
        hook: 'prerouting, or output from the node itself',
        table: 'nat',
        parts: [
          { name: 'services', text: 'two lookups, however many Services there are:' },
          { name: 'service-ips', text: 'map from address, protocol and port to a chain' },
          { name: 'service-nodeports', text: 'map from protocol and node port to a chain' },
          { name: 'external-…', text: 'not for cluster IPs: marks the packet, or applies policy Local' },
          { name: 'service-…', text: 'one rule chooses an endpoint by chance: DNAT' },
        ],
      },
      { hook: 'routing', parts: [{ name: '', text: 'The endpoint’s address says where the packet goes.' }] },
      {
        hook: 'forward',
        table: 'filter',
        parts: [
          { name: 'service-endpoints-check', text: 'rejects or drops Services without endpoints' },
          { name: 'cluster-ips-check', text: 'rejects ports that no Service has, on cluster IPs' },
        ],
      },
      {
        hook: 'postrouting',
        table: 'nat',
        parts: [
          { name: 'masquerading', text: 'marked packets, and those in hairpin-connections, leave with' },
          { name: '', text: 'the node’s address as source' },
        ],
      },
    ],
  },
];

const width = 680;
const lineHeight = 22;
const railX = 22;
const cardX = 44;

/** Colours that are readable on light and dark pages. */
const style = `.kpc .page{fill:#ffffff}.kpc .card{fill:#f6f8fa;stroke:#d0d7de}.kpc text{fill:#1f2328}.kpc .dim{fill:#59636e}
.kpc .hook{fill:#0969da}.kpc .rail{stroke:#0969da;fill:none}.kpc .stop{fill:#0969da}
@media (prefers-color-scheme:dark){.kpc .page{fill:#0d1117}.kpc .card{fill:#161b22;stroke:#30363d}.kpc text{fill:#e6edf3}
.kpc .dim{fill:#9198a1}.kpc .hook{fill:#79c0ff}.kpc .rail{stroke:#79c0ff}.kpc .stop{fill:#79c0ff}}`;

const mono = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"`;

/** @param {PacketWay} way */
export function drawPacketWay({ title, stops }) {
  const parts = [text(16, 30, title, 'font-weight="bold" font-size="16"')];
  let y = 46;
  const dots = [];
  for (const { hook, table, parts: lines } of stops) {
    const height = (lines.length + 1) * lineHeight + 14;
    dots.push(y + 20);
    parts.push(`<rect class="card" x="${cardX}" y="${y}" width="${width - cardX - 12}" height="${height}" rx="6"/>`);
    parts.push(
      text(cardX + 14, y + 24, table === undefined ? hook : `${hook}: ${table}`, 'class="hook" font-weight="bold"'),
    );
    for (const [i, { name, text: words }] of lines.entries()) {
      const at = y + 24 + (i + 1) * lineHeight;
      const x = name === '' && table === undefined ? cardX + 14 : cardX + 204;
      parts.push(text(cardX + 14, at, name, `${mono} font-size="13"`), text(x, at, words, 'class="dim"'));
    }
    y += height + 12;
  }
  const last = dots.at(-1) ?? 0;
  parts.push(`<path class="rail" stroke-width="2" d="M${railX} ${dots[0] ?? 0}V${last}"/>`);
  for (const dot of dots) parts.push(`<circle class="stop" cx="${railX}" cy="${dot}" r="5"/>`);
  return picture(title, y, parts);
}

/** The picture of how kpc is built: its inputs, the state that all of them lead to, and its outputs. */
export const pipelineFile = 'docs/pipeline.svg';

export function drawPipeline() {
  const title = 'How kpc works: manifests and dumps become a kernel state; every command works on states';
  /** @type {(x: number, y: number, wide: number, heading: string, detail: string) => string} */
  const box = (x, y, wide, heading, detail) =>
    `<rect class="card" x="${x}" y="${y}" width="${wide}" height="54" rx="6"/>` +
    text(x + wide / 2, y + 23, heading, 'font-weight="bold" text-anchor="middle"') +
    text(x + wide / 2, y + 42, detail, 'class="dim" font-size="12" text-anchor="middle"');
  /** @type {(path: string) => string} */
  const arrow = (path) => `<path class="rail" stroke-width="2" marker-end="url(#tip)" d="${path}"/>`;
  return picture(title, 402, [
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="stop" d="M0 0L8 4L0 8z"/></marker></defs>',
    box(16, 16, 148, 'YAML, JSON', 'manifests'),
    box(188, 16, 148, 'input', 'checked objects'),
    box(360, 16, 148, 'cluster', 'Service ports, a plan'),
    box(532, 16, 132, 'a mode', 'spells the plan'),
    arrow('M164 43H184'),
    arrow('M336 43H356'),
    arrow('M508 43H528'),
    box(188, 136, 320, 'KernelState', 'rules, sets, virtual servers, addresses, sysctls'),
    arrow('M598 70V163H513'),
    box(16, 136, 124, 'dumps', 'iptables-save, …'),
    arrow('M140 163H184'),
    box(16, 256, 148, 'bundle', 'files, and back'),
    box(188, 256, 148, 'packet', 'trace, test, migrate'),
    box(360, 256, 148, 'diff', 'of two states'),
    box(532, 256, 132, 'describe', 'Service by Service'),
    arrow('M230 190V220H90V252'),
    arrow('M262 190V252'),
    arrow('M434 190V252'),
    arrow('M470 190V220H598V252'),
    box(360, 332, 148, 'kpc-apply', 'the steps, to a kernel'),
    arrow('M434 310V328'),
  ]);
}

/**
 * @param {string} title
 * @param {number} height
 * @param {string[]} parts
 */
function picture(title, height, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="kpc" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>${style}</style>`,
    '<rect class="page" width="100%" height="100%" rx="8"/>',
    `<g font-family="ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">`,
    ...parts,
    '</g>\n</svg>\n',
  ].join('\n');
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {string} attributes
 */
function text(x, y, content, attributes) {
  return content === '' ? '' : `<text x="${x}" y="${y}" ${attributes}>${content}</text>`;
}
