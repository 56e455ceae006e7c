import { quotePrintable } from '../base/printable.ts';
import { readAssignment } from '../kernel/sysctl.ts';

/** What a line of a bundle is that kpc does not write there, in words. `fresh` is the file as kpc would write it. */
export function describeStrangeLine(file: string, line: string, fresh: string): string {
  switch (file) {
    case 'modules.conf':
      return `${quoteUnlessPlain(line)} is not a module that Service rules need`;
    case 'sysctl.conf':
      return describeSysctl(line, fresh);
    case 'ipset.restore':
      return describeSetLine(line, fresh);
    case 'iptables.restore':
    case 'ip6tables.restore':
      return describeRuleLine(line, fresh);
    case 'ipvsadm.restore':
      return describeServerLine(line);
    case 'ip.batch':
      return describeLinkLine(line);
    default:
      return `not what kpc writes: ${quotePrintable(line)}`;
  }
}

/** Names are shown as they are where nothing in them could be taken for anything else. */
function quoteUnlessPlain(text: string): string {
  return /^[\w./:,@+-]{1,100}$/.test(text) ? text : quotePrintable(text);
}

function describeSysctl(line: string, fresh: string): string {
  const assigned = readAssignment(line);
  if (!assigned) return `not what kpc writes: ${quotePrintable(line)}`;
  const { name, value } = assigned;
  const shown = quoteUnlessPlain(name);
  if (!/^net\.(ipv4|ipv6|netfilter|bridge)\.[\w.-]+$/.test(name)) return `${shown} is not a network sysctl`;
  if (!/^\d+$/.test(value)) return `${shown} is set to ${quotePrintable(value)}, which is not a number`;
  const right = fresh.split('\n').find((other) => other.startsWith(`${name} = `));
  if (right === undefined) return `${shown} is not a sysctl that kpc sets for this bundle`;
  return right === line
    ? `${shown} is set twice`
    : `${shown} is set to ${quoteUnlessPlain(value)}, but kpc writes "${right}"`;
}

function describeSetLine(line: string, fresh: string): string {
  const [command, name = '', third = ''] = line.split(' ');
  if (command === 'create') {
    const isKnown = fresh.includes(`create ${name} `);
    return isKnown
      ? `set ${quoteUnlessPlain(name)} is not made as kpc makes it: ${quotePrintable(line)}`
      : `set ${quoteUnlessPlain(name)} does not belong to this bundle's mode and families`;
  }
  if (command === 'add') {
    return `entry ${quoteUnlessPlain(third)} of set ${quoteUnlessPlain(name)} belongs to no Service in services.json: ${quotePrintable(line)}`;
  }
  return `not what kpc writes: ${quotePrintable(line)}`;
}

function describeRuleLine(line: string, fresh: string): string {
  const [first = '', second = ''] = line.split(' ');
  if (first === '-A' || first === '-I') {
    return `a rule of chain ${quoteUnlessPlain(second)} that kpc does not compile from services.json: ${quotePrintable(line)}`;
  }
  if (first.startsWith(':')) {
    const chain = quoteUnlessPlain(first.slice(1));
    return fresh.includes(`${first} - [0:0]\n`)
      ? `chain ${chain} is not declared as kpc declares it: ${quotePrintable(line)}`
      : `chain ${chain} is not one that kpc makes for this bundle`;
  }
  if (first.startsWith('*'))
    return `table ${quoteUnlessPlain(first.slice(1))} is not one that kpc writes, or is here twice`;
  return `not what kpc writes: ${quotePrintable(line)}`;
}

function describeServerLine(line: string): string {
  const [command, kind = '', server = '', option, real = ''] = line.split(' ');
  const name = /^-[tuf]$|^--sctp-service$/.test(kind) ? quoteUnlessPlain(server) : quotePrintable(`${kind} ${server}`);
  if (command === '-A')
    return `virtual server ${name} is not in services.json, or differs from it: ${quotePrintable(line)}`;
  if (command === '-a' && option === '-r') {
    return `real server ${quoteUnlessPlain(real)} of virtual server ${name} is not one of its endpoints in services.json, or differs from it: ${quotePrintable(line)}`;
  }
  return `not what kpc writes: ${quotePrintable(line)}`;
}

function describeLinkLine(line: string): string {
  const [object, command, first = '', keyword, name = ''] = line.split(' ');
  if (object === 'link' && command === 'add') {
    return `link ${quoteUnlessPlain(first)}: kpc makes one link only, kube-ipvs0 of type dummy: ${quotePrintable(line)}`;
  }
  if (object === 'addr' && command === 'add' && keyword === 'dev') {
    return `address ${quoteUnlessPlain(first)} on link ${quoteUnlessPlain(name)} belongs to no Service in services.json: ${quotePrintable(line)}`;
  }
  return `not what kpc writes: ${quotePrintable(line)}`;
}
