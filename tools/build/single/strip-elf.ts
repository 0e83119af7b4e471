/** Fields of an ELF header and of a section header of 64 bits, in bytes from their start. */
const SECTIONS_OFFSET = 0x28;
const SECTION_SIZE = 0x3a;
const SECTION_COUNT = 0x3c;
const NAMES_INDEX = 0x3e;
const FIELD = { name: 0, type: 4, flags: 8, offset: 24, size: 32, link: 40 } as const;
const ELF_MAGIC = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
const NO_BITS = 8;
const FLAG_ALLOCATED = 2;
const ALIGNMENT = 8;

interface Section {
  readonly header: Buffer;
  readonly name: string;
}

/**
 * Removes symbols and debug information from an executable for Linux. Its own code, so that the bytes depend neither on the
 * machine's binutils nor on the processor that the executable is for.
 *
 * @returns the input when it is not an ELF file of 64 bits, little-endian
 */
export function stripElf(file: Buffer): Buffer {
  if (!file.subarray(0, ELF_MAGIC.length).equals(ELF_MAGIC)) return file;
  const sections = sectionsOf(file);
  const isKept = ({ header, name }: Section): boolean =>
    (header.readBigUInt64LE(FIELD.flags) & BigInt(FLAG_ALLOCATED)) !== 0n ||
    !/^\.(?:debug_|symtab$|strtab$)/.test(name);
  const kept = sections.filter((section, index) => index === 0 || isKept(section));
  const loadedEnd = Math.max(
    ...sections
      .filter(({ header }) => (header.readBigUInt64LE(FIELD.flags) & BigInt(FLAG_ALLOCATED)) !== 0n)
      .map(({ header }) => endOf(header)),
  );
  const parts = [file.subarray(0, loadedEnd)];
  let end = loadedEnd;
  const append = (bytes: Buffer): number => {
    const padding = Buffer.alloc((ALIGNMENT - (end % ALIGNMENT)) % ALIGNMENT);
    const at = end + padding.length;
    parts.push(padding, bytes);
    end = at + bytes.length;
    return at;
  };
  const indexes = new Map(kept.map((section, index) => [sections.indexOf(section), index]));
  const headers = kept.map(({ header: old }, index) => {
    const header = Buffer.from(old);
    const offset = Number(old.readBigUInt64LE(FIELD.offset));
    const isLoaded = offset < loadedEnd || index === 0;
    if (!isLoaded && old.readUInt32LE(FIELD.type) !== NO_BITS) {
      header.writeBigUInt64LE(BigInt(append(file.subarray(offset, endOf(old)))), FIELD.offset);
    }
    header.writeUInt32LE(indexes.get(old.readUInt32LE(FIELD.link)) ?? 0, FIELD.link);
    return header;
  });
  const at = append(Buffer.concat(headers));
  const stripped = Buffer.concat(parts);
  stripped.writeBigUInt64LE(BigInt(at), SECTIONS_OFFSET);
  stripped.writeUInt16LE(kept.length, SECTION_COUNT);
  stripped.writeUInt16LE(indexes.get(file.readUInt16LE(NAMES_INDEX)) ?? 0, NAMES_INDEX);
  return stripped;
}

function endOf(header: Buffer): number {
  const isOnDisk = header.readUInt32LE(FIELD.type) !== NO_BITS;
  return (
    Number(header.readBigUInt64LE(FIELD.offset)) + (isOnDisk ? Number(header.readBigUInt64LE(FIELD.size)) : 0)
  );
}

function sectionsOf(file: Buffer): Section[] {
  const at = Number(file.readBigUInt64LE(SECTIONS_OFFSET));
  const size = file.readUInt16LE(SECTION_SIZE);
  const headers = Array.from({ length: file.readUInt16LE(SECTION_COUNT) }, (_, index) =>
    file.subarray(at + index * size, at + (index + 1) * size),
  );
  const names = headers[file.readUInt16LE(NAMES_INDEX)];
  if (names === undefined) throw new Error("Cannot strip the executable: it has no names of sections");
  const table = file.subarray(Number(names.readBigUInt64LE(FIELD.offset)), endOf(names));
  return headers.map((header) => {
    const from = header.readUInt32LE(FIELD.name);
    return { header, name: table.toString("latin1", from, table.indexOf(0, from)) };
  });
}
