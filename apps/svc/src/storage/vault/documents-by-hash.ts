import type { VaultKv } from "./kv.ts";

/** Records that are stored under the hash of their token, and found by their id too. */
export class DocumentsByHash<T extends { readonly id: string; readonly tokenHash: string }> {
  readonly #kv: VaultKv;
  readonly #folder: string;
  readonly #idFolder: string;

  constructor(kv: VaultKv, folder: string, idFolder: string) {
    this.#kv = kv;
    this.#folder = folder;
    this.#idFolder = idFolder;
  }

  pathOf(hash: string): string {
    return `${this.#folder}/${hash}`;
  }

  idPathOf(id: string): string {
    return `${this.#idFolder}/${id}`;
  }

  async insert(record: T): Promise<void> {
    await this.#kv.write(this.idPathOf(record.id), { hash: record.tokenHash }, 0);
    await this.#kv.write(this.pathOf(record.tokenHash), record, 0);
  }

  async find(hash: string): Promise<T | undefined> {
    return (await this.#kv.read<T | null>(this.pathOf(hash)))?.value ?? undefined;
  }

  async get(id: string): Promise<T | undefined> {
    const hash = await this.hashOf(id);
    return hash === undefined ? undefined : this.find(hash);
  }

  async hashOf(id: string): Promise<string | undefined> {
    return (await this.#kv.read<{ hash: string }>(this.idPathOf(id)))?.value.hash;
  }

  /** All records. */
  async list(): Promise<readonly T[]> {
    return this.read(await this.#kv.list(this.#folder));
  }

  async read(hashes: readonly string[]): Promise<readonly T[]> {
    const stored = await this.#kv.readAll<T | null>(hashes.map((hash) => this.pathOf(hash)));
    return stored.flatMap(({ value }) => (value === null ? [] : value));
  }

  /** Changes a record, if it is there. @param change gives the new record, or undefined to leave it as it is */
  async change(id: string, change: (record: T) => T | undefined): Promise<void> {
    const hash = await this.hashOf(id);
    if (hash === undefined) return;
    await this.#kv.change<T | null>(this.pathOf(hash), (record) => (record ? change(record) : undefined));
  }
}
