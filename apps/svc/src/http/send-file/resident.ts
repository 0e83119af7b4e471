import { systemCalls } from "./system-calls.ts";

/** Linux's page size on x86-64 and arm64. A larger one only makes the answer's vector longer than needed. */
const PAGE_BYTES = 4096;
const PROT_READ = 1;
const MAP_SHARED = 1;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

/** Tells whether the kernel has all pages of a range of a file in memory (mincore(2)). It reads nothing. */
export function isResident(file: number, offset: number, length: number): boolean {
  const { mmap, mincore, munmap } = systemCalls();
  const start = offset - (offset % PAGE_BYTES);
  const bytes = BigInt(offset + length - start);
  const place = mmap(0n, bytes, PROT_READ, MAP_SHARED, file, BigInt(start));
  if (place === MAP_FAILED || place === -1n) return false;
  try {
    const pages = Buffer.alloc(Math.ceil(Number(bytes) / PAGE_BYTES));
    if (mincore(place, bytes, pages) !== 0) return false;
    // The lowest bit of each byte counts; Linux sets no other.
    return !pages.includes(0);
  } finally {
    munmap(place, bytes);
  }
}
