// @ts-check

/**
 * A program of Windows without its signature. Node's own is not one of what is made of it, and Windows would call it broken.
 * The format is Microsoft's PE: a directory says where the certificates are, which are the end of the file.
 *
 * @param {Buffer} program
 * @returns {Buffer}
 */
export function unsigned(program) {
  const header = program.readUInt32LE(0x3c);
  if (program.toString('latin1', header, header + 4) !== 'PE\0\0') throw new Error('this is no program of Windows');
  const optional = header + 24;
  const isWide = program.readUInt16LE(optional) === 0x20b;
  const certificates = optional + (isWide ? 112 : 96) + 4 * 8;
  const [start, size] = [program.readUInt32LE(certificates), program.readUInt32LE(certificates + 4)];
  if (start === 0) return program;
  if (start + size !== program.length) throw new Error('the signature is not the end of the program');
  const bare = Buffer.from(program.subarray(0, start));
  bare.fill(0, certificates, certificates + 8);
  // The checksum of the whole file, which Windows looks at in drivers alone.
  bare.writeUInt32LE(0, optional + 64);
  return bare;
}
