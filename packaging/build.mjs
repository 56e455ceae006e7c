// Builds what a release holds, for linux on x64 and arm64, into dist/packages: .deb, .rpm, an archive, the manifest for krew,
// the list of what is bundled, and the checksums. The same commit gives the same bytes.
//
//   node packaging/build.mjs [x64] [arm64]
//
// It needs npm's registry for Node itself (packaging/node/package-lock.json says which), dpkg-deb, and rpmbuild of Debian's
// package rpm. package.json says where the project is, whose releases hold the files, and who its author is.
// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { compileSchemas } from '../scripts/compile-schemas.mjs';
import { bundledPackages, licencesOf, separator } from '../scripts/licences.mjs';
import { makeSingleFile } from '../scripts/single-file.mjs';
import { listBundled } from './sbom.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version, author, repository: shorthand } = readJson(join(root, 'package.json'));
const out = join(root, 'dist', 'packages');
const programs = ['kpc', 'kpc-apply'];
const repository = shorthand.replace(/^github:/, 'https://github.com/');

const shortDescription = "compiles Kubernetes Services to kube-proxy's rules, offline";
const longDescription = [
  'kpc compiles Kubernetes Services and EndpointSlices to the rules that',
  'kube-proxy programs into a node: iptables, IPVS or nftables. It needs no',
  'cluster, no root and no network. kpc-apply puts those rules into the kernel',
  'of this node, and keeps them there as a service.',
];

/** An architecture, as Node, Debian and rpm call it. */
const architectures = {
  x64: { debian: 'amd64', rpm: 'x86_64' },
  arm64: { debian: 'arm64', rpm: 'aarch64' },
};

/** What kpc-apply runs: on a node that compiles alone, none of it is needed. */
const tools = {
  deb: ['iptables', 'ipset', 'ipvsadm', 'nftables', 'iproute2', 'kmod', 'conntrack'],
  rpm: ['iptables', 'ipset', 'ipvsadm', 'nftables', 'iproute', 'kmod', 'conntrack-tools'],
};

/** Where packages of each kind keep what zsh reads. */
const zshFolders = { deb: 'usr/share/zsh/vendor-completions', rpm: 'usr/share/zsh/site-functions' };

const asked = process.argv.slice(2);
const chosen = /** @type {(keyof typeof architectures)[]} */ (Object.keys(architectures)).filter(
  (each) => asked.length === 0 || asked.includes(each),
);
const epoch =
  process.env['SOURCE_DATE_EPOCH'] ??
  execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root }).toString().trim();
const date = new Date(Number(epoch) * 1000).toISOString().slice(0, 10);
const env = { ...process.env, SOURCE_DATE_EPOCH: epoch, TZ: 'UTC', LC_ALL: 'C' };
const work = mkdtempSync(join(tmpdir(), 'kpc-packages-'));
process.umask(0o022);
try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  await buildAll();
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function buildAll() {
  const nodes = installNode();
  /** @type {Map<string, string>} */
  const archives = new Map();
  const pages = await manPages();
  for (const architecture of chosen) {
    const executable = join(work, architecture, 'kpc-apply');
    const { metafile, size } = await makeExecutable(executable, nodes, architecture);
    const packages = bundledPackages([metafile]);
    const licences = `${licencesOf(root, packages)}${separator}Node ${nodes.version}\n\n${nodes.licence}`;
    const files = { executable, pages, licences, sbom: listBundled(root, packages, nodes.version, epoch) };
    makeDeb(architecture, files, size);
    makeRpm(architecture, files);
    archives.set(architectures[architecture].debian, makeArchive(architecture, files));
    writeFileSync(join(out, `kpc-${version}.cdx.json`), files.sbom);
  }
  writeKrew(archives);
  const names = readdirSync(out).sort();
  writeFileSync(join(out, 'SHA256SUMS'), names.map((name) => `${sha256(join(out, name))}  ${name}\n`).join(''));
  for (const name of names)
    console.log(`dist/packages/${name}: ${(readFileSync(join(out, name)).length / 1e6).toFixed(1)} MB`);
}

/** Node for each architecture, as the lock file has it, kept in dist/node between runs. */
function installNode() {
  const folder = join(root, 'dist', 'node');
  mkdirSync(folder, { recursive: true });
  const lock = readFileSync(join(root, 'packaging/node/package-lock.json'), 'utf8');
  if (
    !existsSync(join(folder, 'package-lock.json')) ||
    readFileSync(join(folder, 'package-lock.json'), 'utf8') !== lock
  ) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    cpSync(join(root, 'packaging/node/package.json'), join(folder, 'package.json'));
    writeFileSync(join(folder, 'package-lock.json'), lock);
    // By force: one of them is not for this machine.
    try {
      execFileSync('npm', ['ci', '--force', '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: folder,
        stdio: 'pipe',
      });
    } catch (error) {
      rmSync(folder, { recursive: true });
      throw error;
    }
  }
  const own = join(folder, 'node_modules', `node-linux-${process.arch}`);
  return {
    /** @param {string} architecture */
    find: (architecture) => join(folder, 'node_modules', `node-linux-${architecture}`, 'bin', 'node'),
    maker: join(own, 'bin', 'node'),
    version: readJson(join(own, 'package.json')).version,
    licence: readFileSync(join(own, 'LICENSE'), 'utf8'),
  };
}

/**
 * Both programs in one file, so that Node is there once. It is kpc-apply; under the name kpc, or as a plugin of kubectl, it
 * is kpc.
 *
 * @param {string} path
 * @param {ReturnType<typeof installNode>} nodes
 * @param {keyof typeof architectures} architecture
 */
async function makeExecutable(path, nodes, architecture) {
  const source = `
    import { basename } from 'node:path';
    const isApply = basename(process.argv0).startsWith('kpc-apply');
    const program = isApply ? import('./src/cli/kpc-apply/main.ts') : import('./src/cli/kpc/main.ts');
    program.then(({ main }) => main(process.argv.slice(2))).then((status) => { process.exitCode = status; });
  `;
  const node = nodes.find(architecture);
  const metafile = await makeSingleFile({ source, out: path, node, maker: nodes.maker, withCache: false });
  return { metafile, size: readFileSync(path).length };
}

/** @returns {Promise<ReadonlyMap<string, string>>} */
async function manPages() {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'packaging/man-pages.ts')],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    mainFields: ['module', 'main'],
    define: { KPC_VERSION: JSON.stringify(version) },
    plugins: [compileSchemas],
  });
  const path = join(work, 'man-pages.cjs');
  writeFileSync(path, outputFiles[0]?.contents ?? '');
  return createRequire(import.meta.url)(path).manPages(date);
}

/**
 * @typedef {object} Files
 * @property {string} executable
 * @property {ReadonlyMap<string, string>} pages
 * @property {string} licences
 * @property {string} sbom
 */

/**
 * The files of a package, as they are below / on a machine.
 *
 * @param {string} folder
 * @param {'deb' | 'rpm'} kind
 * @param {Files} files
 */
function stage(folder, kind, { executable, pages, licences, sbom }) {
  place(join(folder, 'usr/bin/kpc-apply'), readFileSync(executable), 0o755);
  symlinkSync('kpc-apply', join(folder, 'usr/bin/kpc'));
  for (const [name, text] of pages) {
    place(join(folder, `usr/share/man/man${name.slice(-1)}/${name}.gz`), gzipSync(text, { level: 9 }));
  }
  for (const program of programs) {
    place(join(folder, `usr/share/bash-completion/completions/${program}`), completion(program, 'bash'));
    place(join(folder, zshFolders[kind], `_${program}`), completion(program, 'zsh'));
    place(join(folder, `usr/share/fish/vendor_completions.d/${program}.fish`), completion(program, 'fish'));
  }
  const unit = readFileSync(join(root, 'examples/systemd/kpc-apply.service'), 'utf8');
  place(join(folder, 'usr/lib/systemd/system/kpc-apply.service'), unit.replace('/usr/local/bin/', '/usr/bin/'));
  mkdirSync(join(folder, 'etc/kpc'), { recursive: true });
  const doc = join(folder, 'usr/share/doc/kpc');
  place(join(doc, 'copyright'), `${readFileSync(join(root, 'LICENSE'), 'utf8')}${separator}${licences}`);
  place(join(doc, 'CHANGELOG.md.gz'), gzipSync(readFileSync(join(root, 'CHANGELOG.md')), { level: 9 }));
  place(join(doc, 'kpc.cdx.json'), sbom);
}

/**
 * What the program of this very checkout prints: `npm run build` has built it.
 *
 * @param {string} program
 * @param {string} shell
 */
function completion(program, shell) {
  return execFileSync(process.execPath, [join(root, 'bin', `${program}.js`), 'completion', shell]);
}

/**
 * @param {keyof typeof architectures} architecture
 * @param {Files} files
 * @param {number} size
 */
function makeDeb(architecture, files, size) {
  const folder = join(work, architecture, 'deb');
  stage(folder, 'deb', files);
  const { debian } = architectures[architecture];
  const control = `Package: kpc
Version: ${version}
Architecture: ${debian}
Maintainer: ${author}
Homepage: ${repository}
Installed-Size: ${Math.ceil(size / 1024)}
Section: net
Priority: optional
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6
Recommends: ${tools.deb.join(', ')}
Description: ${shortDescription}
${longDescription.map((line) => ` ${line}\n`).join('')}`;
  place(join(folder, 'DEBIAN/control'), control);
  for (const [name, script] of [
    ['postinst', 'after-install'],
    ['prerm', 'before-remove'],
    ['postrm', 'after-remove'],
  ]) {
    place(join(folder, 'DEBIAN', name ?? ''), readFileSync(join(root, `packaging/scripts/${script}.sh`)), 0o755);
  }
  const path = join(out, `kpc_${version}_${debian}.deb`);
  // One thread: with several, the bytes depend on how many there are.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zzstd', '-z12', '--threads-max=1', '--build', folder, path], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/**
 * @param {keyof typeof architectures} architecture
 * @param {Files} files
 */
function makeRpm(architecture, files) {
  const folder = join(work, architecture, 'rpm');
  stage(folder, 'rpm', files);
  const { rpm } = architectures[architecture];
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join('/', entry.parentPath.slice(folder.length), entry.name))
    .sort();
  /** @param {string} name */
  const script = (name) => readFileSync(join(root, `packaging/scripts/${name}.sh`), 'utf8').replace(/^#!.*\n/, '');
  const spec = `Name: kpc
Version: ${version}
Release: 1
Summary: ${shortDescription}
License: Apache-2.0 AND MIT
URL: ${repository}
AutoReqProv: no
Requires: glibc >= 2.28, libgcc, libstdc++
Recommends: ${tools.rpm.join(', ')}
%description
${longDescription.join('\n')}
%install
cp -a ${folder}/. %{buildroot}/
%post
${script('after-install')}
%preun
${script('before-remove')}
%postun
${script('after-remove')}
%files
%dir /etc/kpc
${paths.join('\n')}
`;
  const top = join(work, architecture, 'rpmbuild');
  place(join(top, 'kpc.spec'), spec);
  const macros = {
    _topdir: top,
    _rpmdir: top,
    _rpmfilename: '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm',
    _binary_payload: 'w12.zstdio',
    _buildhost: 'kpc',
    _build_id_links: 'none',
    __os_install_post: '%{nil}',
    debug_package: '%{nil}',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
  };
  const defines = Object.entries(macros).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
  execFileSync('rpmbuild', ['-bb', '--quiet', '--target', `${rpm}-linux`, ...defines, join(top, 'kpc.spec')], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const name = `kpc-${version}-1.${rpm}.rpm`;
  cpSync(join(top, name), join(out, name));
}

/**
 * For other systems, and for krew, which takes files alone and no links.
 *
 * @param {keyof typeof architectures} architecture
 * @param {Files} files
 * @returns {string} its SHA-256
 */
function makeArchive(architecture, { executable, pages, licences, sbom }) {
  const name = `kpc-${version}`;
  const folder = join(work, architecture, 'archive', name);
  place(join(folder, 'kpc-apply'), readFileSync(executable), 0o755);
  place(join(folder, 'LICENSE'), readFileSync(join(root, 'LICENSE')));
  place(join(folder, 'THIRD-PARTY-LICENSES.txt'), licences);
  place(join(folder, 'kpc.cdx.json'), sbom);
  place(join(folder, 'kpc-apply.service'), readFileSync(join(root, 'examples/systemd/kpc-apply.service')));
  for (const [page, text] of pages) place(join(folder, 'man', `man${page.slice(-1)}`, page), text);
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  const tar = execFileSync('tar', [...same, '-C', dirname(folder), '-cf', '-', name], { maxBuffer: 2 ** 30 });
  const path = join(out, `${name}-linux-${architectures[architecture].debian}.tar.gz`);
  writeFileSync(path, gzipSync(tar));
  return sha256(path);
}

/** @param {ReadonlyMap<string, string>} archives the SHA-256 of each, by architecture */
function writeKrew(archives) {
  const values = {
    version,
    homepage: repository,
    downloads: `${repository}/releases/download/v${version}`,
    'sha256-amd64': archives.get('amd64'),
    'sha256-arm64': archives.get('arm64'),
  };
  let text = readFileSync(join(root, 'packaging/krew/kpc.yaml'), 'utf8').replace(/^#.*\n/, '');
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`{${name}}`, value ?? '0'.repeat(64));
  writeFileSync(join(out, 'krew-kpc.yaml'), text);
}

/**
 * @param {string} path
 * @param {string | Uint8Array} content
 * @param {number} mode
 */
function place(path, content, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

/** @param {string} path */
function sha256(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** @param {string} path */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
