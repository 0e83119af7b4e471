import { GitStoreError } from "../errors.ts";
import { COMMIT, oidBytes } from "../object-format.ts";
import { parseCommit } from "../commit.ts";
import { orderByOid } from "../oid-order.ts";
import type { PackReader } from "../pack/pack-reader.ts";
import type { Oid } from "../oid.ts";
import { bitsOf, nextBit } from "./bitset.ts";
import { MAX_LEVEL, type CommitTable } from "./commit-graph-file.ts";
import { GrowableUint32 } from "./growable.ts";
import type { ObjectNumbers } from "./object-numbers.ts";
import type { ObjectTypes } from "./object-types.ts";

/** Commits read between two pauses: about 1 ms. */
const PAUSE = 128;
/** Marks a parent or tree that is in none of the packs. */
const MISSING = 0xffff_ffff;

/**
 * The commits of a repository as columns, about 30 bytes for each commit. The row of a commit is its rank among the
 * commits in the order of object numbers. When packs are added, rows are only appended.
 */
export class CommitColumns {
  readonly #numbers: ObjectNumbers;
  readonly #types: ObjectTypes;
  readonly #reader: PackReader;
  readonly #shallow: ReadonlySet<Oid>;
  readonly #rowNumber = new GrowableUint32();
  readonly #tree = new GrowableUint32();
  readonly #level = new GrowableUint32();
  /** Committer dates in seconds, low and high 32 bits. */
  readonly #timeLow = new GrowableUint32();
  readonly #timeHigh = new GrowableUint32();
  readonly #parentStart = new GrowableUint32();
  readonly #parents = new GrowableUint32();
  /** Number of commits before each element of the set of commits. */
  readonly #rank = new GrowableUint32();
  /** Object numbers below this are in the columns. */
  #covered = 0;
  #rows = 0;
  #parsed = 0;
  #incomplete = false;

  /** @param shallow ids of commits whose parents are ignored */
  constructor(
    numbers: ObjectNumbers,
    types: ObjectTypes,
    reader: PackReader,
    shallow: ReadonlySet<Oid> = new Set(),
  ) {
    this.#shallow = shallow;
    this.#numbers = numbers;
    this.#types = types;
    this.#reader = reader;
    this.#parentStart.push(0);
  }

  /** Number of commits. */
  get count(): number {
    return this.#rows;
  }

  /** Whether a parent or tree is missing. Later packs may bring it, and the columns must then be rebuilt. */
  get incomplete(): boolean {
    return this.#incomplete;
  }

  /** Whether the history of the repository is cut at some commits. */
  get isShallow(): boolean {
    return this.#shallow.size > 0;
  }

  /** Tells whether the history is cut at the commit of a row: it has no parents here. */
  isCutAt(row: number): boolean {
    return this.isShallow && this.#shallow.has(this.#numbers.oidOf(this.numberOf(row)));
  }

  /** Number of commits that were read, because the commit-graph file does not contain them. */
  get parsed(): number {
    return this.#parsed;
  }

  /** Returns the row of a commit by object number. The object must be a commit. */
  rowOf(number: number): number {
    const below = this.#types.of(COMMIT)[number >>> 5]! & ((1 << (number & 31)) - 1);
    return this.#rank.values[number >>> 5]! + bitsOf(below);
  }

  /** Returns the object number of the commit in a row. */
  numberOf(row: number): number {
    return this.#rowNumber.values[row]!;
  }

  /** Returns the object number of the root tree. @throws {GitStoreError} `missing_object` */
  treeOf(row: number): number {
    const tree = this.#tree.values[row]!;
    if (tree === MISSING) throw this.#missing(row, "tree");
    return tree;
  }

  /** Returns the topological level, see `CommitTable.levels`. It is higher than the level of every ancestor. */
  levelOf(row: number): number {
    return this.#level.values[row]!;
  }

  /** Committer date, seconds since the epoch. */
  timeOf(row: number): number {
    return this.#timeLow.values[row]! + this.#timeHigh.values[row]! * 0x1_0000_0000;
  }

  /** Index of the first parent: the parents are `parentAt(i)` for i in `[parentsFrom(row), parentsFrom(row + 1))`. */
  parentsFrom(row: number): number {
    return this.#parentStart.values[row]!;
  }

  /** @throws {GitStoreError} `missing_object` */
  parentAt(index: number): number {
    const parent = this.#parents.values[index]!;
    if (parent === MISSING) throw this.#missing(this.#childOf(index), "parent");
    return parent;
  }

  /**
   * Adds the commits of packs that were added to the numbers and types since the last call. Yields between slices.
   *
   * @param table content of a commit-graph file; other commits are read from their packs
   */
  *extend(table?: CommitTable): Generator<void, void, undefined> {
    const commits = this.#types.of(COMMIT);
    const firstRow = this.#rows;
    const end = this.#numbers.count;
    this.#extendRanks(end);
    for (let n = nextBit(commits, this.#covered, end, 1); n < end; n = nextBit(commits, n + 1, end, 1)) {
      this.#rowNumber.push(n);
    }
    this.#rows = this.#rowNumber.length;
    this.#covered = end;
    const known = table === undefined ? undefined : this.#match(table);
    for (let row = firstRow; row < this.#rows; row++) {
      const position = known === undefined ? -1 : known.positions[row]!;
      if (position >= 0) this.#copy(table!, position, known!.rows);
      else this.#parse(row);
      this.#parentStart.push(this.#parents.length);
      if (row % PAUSE === PAUSE - 1) yield;
    }
    this.#setLevels(firstRow);
  }

  /** Returns the content of the commit-graph file. @throws {GitStoreError} `missing_object` */
  toTable(): CommitTable {
    const { format } = this.#numbers;
    const width = oidBytes(format);
    const count = this.#rows;
    const oids = Buffer.allocUnsafe(count * width);
    const start = (row: number): void => {
      const { pack, base } = this.#numbers.packOf(this.numberOf(row));
      const at = pack.oidStartAt(this.numberOf(row) - base);
      pack.index.bytes.copy(oids, row * width, at, at + width);
    };
    for (let row = 0; row < count; row++) start(row);
    const order = orderByOid(oids, count, width);
    const positions = new Uint32Array(count);
    for (let position = 0; position < count; position++) positions[order[position]!] = position;
    const sorted = Buffer.allocUnsafe(count * width);
    const trees = Buffer.allocUnsafe(count * width);
    const parentStart = new Uint32Array(count + 1);
    const parents: number[] = [];
    const times = new Float64Array(count);
    const levels = new Uint32Array(count);
    for (let position = 0; position < count; position++) {
      const row = order[position]!;
      oids.copy(sorted, position * width, row * width, (row + 1) * width);
      const tree = this.#numbers.packOf(this.treeOf(row));
      const at = tree.pack.oidStartAt(this.treeOf(row) - tree.base);
      tree.pack.index.bytes.copy(trees, position * width, at, at + width);
      for (let i = this.parentsFrom(row); i < this.parentsFrom(row + 1); i++) {
        parents.push(positions[this.parentAt(i)]!);
      }
      parentStart[position + 1] = parents.length;
      times[position] = this.timeOf(row);
      levels[position] = this.levelOf(row);
    }
    return {
      format,
      count,
      oids: sorted,
      trees,
      parentStart,
      parents: Uint32Array.from(parents),
      times,
      levels,
    };
  }

  #extendRanks(end: number): void {
    const commits = this.#types.of(COMMIT);
    const elements = Math.ceil(end / 32);
    // The last element may have been partly full.
    let element = Math.max(0, this.#rank.length - 1);
    let rank = this.#rank.length === 0 ? 0 : this.#rank.values[element]!;
    this.#rank.extend(elements);
    for (; element < elements; element++) {
      this.#rank.values[element] = rank;
      rank += bitsOf(commits[element]!);
    }
  }

  /** Maps rows to positions in the table; -1 for a row that it does not contain. */
  #match(table: CommitTable): { positions: Int32Array; rows: Int32Array } {
    const width = oidBytes(table.format);
    const positions = new Int32Array(this.#rows).fill(-1);
    const rows = new Int32Array(table.count).fill(-1);
    for (let position = 0; position < table.count; position++) {
      const number = this.#numbers.numberOf(table.oids, position * width);
      if (number < 0 || !this.#types.isCommit(number)) continue;
      const row = this.rowOf(number);
      positions[row] = position;
      rows[position] = row;
    }
    return { positions, rows };
  }

  #copy(table: CommitTable, position: number, rows: Int32Array): void {
    const width = oidBytes(table.format);
    const tree = this.#numbers.numberOf(table.trees, position * width);
    this.#tree.push(this.#orMissing(tree));
    this.#pushTime(table.times[position]!);
    for (let i = table.parentStart[position]!; i < table.parentStart[position + 1]!; i++) {
      const parent = rows[table.parents[i]!]!;
      this.#parents.push(this.#orMissing(parent));
    }
  }

  #parse(row: number): void {
    this.#parsed++;
    const number = this.numberOf(row);
    const { pack, base } = this.#numbers.packOf(number);
    const commit = parseCommit(this.#reader.read(pack, number - base).content, this.#numbers.format);
    const tree = this.#numbers.numberOfOid(commit.tree);
    this.#tree.push(this.#orMissing(tree));
    this.#pushTime(commit.committerTime);
    if (this.isCutAt(row)) return;
    for (const oid of commit.parents) {
      const parent = this.#numbers.numberOfOid(oid);
      const isThere = parent >= 0 && this.#types.isCommit(parent);
      this.#parents.push(isThere ? this.rowOf(parent) : this.#orMissing(-1));
    }
  }

  #orMissing(found: number): number {
    if (found < 0) this.#incomplete = true;
    return found < 0 ? MISSING : found;
  }

  #pushTime(time: number): void {
    this.#timeLow.push(time % 0x1_0000_0000);
    this.#timeHigh.push(Math.floor(time / 0x1_0000_0000));
  }

  #setLevels(firstRow: number): void {
    this.#level.extend(this.#rows);
    const levels = this.#level.values;
    const stack: number[] = [];
    for (let first = firstRow; first < this.#rows; first++) {
      if (levels[first] !== 0) continue;
      stack.push(first);
      while (stack.length > 0) {
        const row = stack.at(-1)!;
        let highest = 0;
        let waiting = false;
        for (let i = this.parentsFrom(row); i < this.parentsFrom(row + 1); i++) {
          const parent = this.#parents.values[i]!;
          if (parent === MISSING) continue;
          const level = levels[parent]!;
          if (level === 0) {
            stack.push(parent);
            waiting = true;
          } else if (level > highest) highest = level;
        }
        if (waiting) continue;
        levels[row] = Math.min(highest + 1, MAX_LEVEL);
        stack.pop();
      }
    }
  }

  /** Row of the commit that has this parent. */
  #childOf(index: number): number {
    let row = 0;
    while (row + 1 < this.#rows && this.parentsFrom(row + 1) <= index) row++;
    return row;
  }

  #missing(row: number, what: string): GitStoreError {
    const oid = this.#numbers.oidOf(this.numberOf(row));
    return new GitStoreError("missing_object", `walk commit ${oid}: its ${what} is not in the store`, {
      oid,
    });
  }
}
