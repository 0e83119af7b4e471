/** A small deterministic generator (mulberry32): equal seeds give equal repositories on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor((this.#next() / 2 ** 32) * limit);
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** `count` lines of a few words: compresses about as source text does. */
  text(count: number): string {
    let out = "";
    for (let line = 0; line < count; line++) {
      const words = Array.from({ length: 3 + this.below(6) }, () => WORDS[this.below(WORDS.length)]);
      out += `${words.join(" ")} ${this.below(1_000_000)}\n`;
    }
    return out;
  }

  /** Bytes that do not compress. */
  bytes(length: number): Buffer {
    const out = Buffer.alloc(Math.ceil(length / 4) * 4);
    for (let at = 0; at < length; at += 4) out.writeUInt32LE(this.#next(), at);
    return out.subarray(0, length);
  }
}

const WORDS =
  "return value index object commit tree parent delta window buffer const let for while if else".split(" ");
