/**
 * Gives a buffer's memory back to the system at once. A thread that waits for its next job collects no garbage, and
 * would keep tens of megabytes. Only for buffers of `allocUnsafeSlow`, which have their memory to themselves.
 */
export function freeBuffer(buffer: Buffer): void {
  const memory = buffer.buffer;
  if (memory instanceof ArrayBuffer && buffer.byteOffset === 0 && buffer.length === memory.byteLength) {
    memory.transfer(0);
  }
}
