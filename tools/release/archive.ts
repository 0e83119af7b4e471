import { crc32, deflateRawSync, gzipSync } from "node:zlib";

/** A file of an archive. */
export interface ArchiveFile {
  /** With `/` between folders. */
  readonly path: string;
  readonly content: Buffer;
  readonly isProgram: boolean;
}

const BLOCK = 512;

/** A tar file, compressed by gzip: what `tar -xzf` reads. Equal files give equal bytes. */
export function tarGz(files: readonly ArchiveFile[], epoch: number): Buffer {
  const parts = files.flatMap(({ path, content, isProgram }) => {
    if (Buffer.byteLength(path) > 100) throw new RangeError(`Cannot archive "${path}": its name is too long`);
    const header = Buffer.alloc(BLOCK);
    const octal = (value: number, at: number, length: number): void => {
      header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
    };
    header.write(path, 0, "utf8");
    octal(isProgram ? 0o755 : 0o644, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(content.length, 124, 12);
    octal(epoch, 136, 12);
    header.write("        0", 148, "latin1");
    header.write("ustar\u000000", 257, "latin1");
    header.write("root", 265, "latin1");
    header.write("root", 297, "latin1");
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    );
    return [header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]), { level: 9 });
}

/** A zip file for Windows. Equal files give equal bytes. */
export function zip(files: readonly ArchiveFile[], epoch: number): Buffer {
  const date = new Date(epoch * 1000);
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  const day = ((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  const parts: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const { path, content } of files) {
    const name = Buffer.from(path);
    const data = deflateRawSync(content, { level: 9 });
    // Fields that the head of the file and its entry in the directory share: version 2.0, UTF-8, deflate, and so on.
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(0x800, 2);
    shared.writeUInt16LE(8, 4);
    shared.writeUInt16LE(time, 6);
    shared.writeUInt16LE(day, 8);
    shared.writeUInt32LE(crc32(content), 10);
    shared.writeUInt32LE(data.length, 14);
    shared.writeUInt32LE(content.length, 18);
    shared.writeUInt16LE(name.length, 22);
    const head = Buffer.concat([Buffer.from("PK\x03\x04"), shared, name]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    entries.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), shared, place, name]));
    parts.push(head, data);
    offset += head.length + data.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, end]);
}
