import type { VaultClient } from "@devplat/secret-store";
import type { RestoreFence } from "../restore-fence.ts";
import { VaultKv, type Stored } from "./kv.ts";

/** Documents of an instance. Each request waits for the fence: one after the other can belong to one action. */
export class FencedKv extends VaultKv {
  readonly #fence: RestoreFence;

  constructor(
    client: VaultClient,
    place: { readonly mount: string; readonly prefix: string },
    fence: RestoreFence,
  ) {
    super(client, place);
    this.#fence = fence;
  }

  override async read<T>(path: string, version?: number): Promise<Stored<T> | undefined> {
    await this.#fence.pass();
    return super.read<T>(path, version);
  }

  override async write(path: string, value: unknown, version: number): Promise<boolean> {
    await this.#fence.pass();
    return super.write(path, value, version);
  }

  override async remove(path: string): Promise<void> {
    await this.#fence.pass();
    return super.remove(path);
  }

  override async list(folder: string): Promise<readonly string[]> {
    await this.#fence.pass();
    return super.list(folder);
  }
}
