/**
 * Releases the memory of a buffer immediately. An idle thread does not collect garbage, and would keep tens of
 * megabytes. Only for buffers of `allocUnsafeSlow`, which share their memory with no other buffer.
 */
export function freeBuffer(buffer: Buffer): void {
  const memory = buffer.buffer;
  if (memory instanceof ArrayBuffer && buffer.byteOffset === 0 && buffer.length === memory.byteLength) {
    memory.transfer(0);
  }
}
