/** 2^130 - 5. */
const PRIME = (1n << 130n) - 5n;
const TAG_BITS = 128;
/** Bits of the multiplier that have to be 0. */
const CLAMP = 0x0ffffffc0ffffffc0ffffffc0fffffffn;
const BLOCK_BYTES = 16;

/**
 * The authenticator Poly1305 (RFC 8439 section 2.5), which Node has only as a part of other ciphers. It is not of
 * constant time: use it on files, never on what a peer can measure.
 */
export function poly1305(key: Buffer, message: Buffer): Buffer {
  const multiplier = littleEndian(key.subarray(0, BLOCK_BYTES)) & CLAMP;
  let sum = 0n;
  for (let at = 0; at < message.length; at += BLOCK_BYTES) {
    const block = Buffer.concat([message.subarray(at, at + BLOCK_BYTES), Buffer.of(1)]);
    sum = ((sum + littleEndian(block)) * multiplier) % PRIME;
  }
  const tag = BigInt.asUintN(TAG_BITS, sum + littleEndian(key.subarray(BLOCK_BYTES)));
  return Buffer.from(Buffer.from(tag.toString(16).padStart(TAG_BITS / 4, "0"), "hex").toReversed());
}

function littleEndian(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes.toReversed()).toString("hex")}`);
}
