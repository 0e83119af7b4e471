const AF_UNIX = 1;
/** `struct sockaddr_un` on Linux: the family, and the path with its end. */
const ADDRESS_BYTES = 110;
const PATH_OFFSET = 2;

/**
 * The address of a Unix socket for calls of the C library (unix(7)).
 *
 * @param path absolute, or beginning with `@` for a name that is not in the file system
 * @returns undefined if the path is too long
 */
export function unixAddress(path: string): Buffer | undefined {
  const text = Buffer.from(path);
  // The path in the file system ends with a zero.
  if (text.length === 0 || text.length >= ADDRESS_BYTES - PATH_OFFSET) return undefined;
  const isAbstract = path.startsWith("@");
  if (isAbstract) text[0] = 0;
  // The length says where a name ends. Zeros behind it would be a part of it.
  const address = Buffer.alloc(isAbstract ? PATH_OFFSET + text.length : ADDRESS_BYTES);
  address.writeUInt16LE(AF_UNIX, 0);
  text.copy(address, PATH_OFFSET);
  return address;
}
