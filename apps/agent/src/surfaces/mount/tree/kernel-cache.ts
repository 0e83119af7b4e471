import { encodeInvalidEntry } from "@devplat/fuse-protocol";
import type { DirectoryNode, MountNode } from "./nodes.ts";

/** Ends the time for which the kernel uses names without a lookup, after a change. Open files are not touched. */
export class KernelCache {
  readonly #root: DirectoryNode;
  readonly #notify: (notification: Buffer) => Promise<void>;
  readonly #canExpire: () => boolean;

  /** @param canExpire whether the kernel can keep what is mounted below a name (7.38) */
  constructor(
    root: DirectoryNode,
    notify: (notification: Buffer) => Promise<void>,
    canExpire: () => boolean,
  ) {
    this.#root = root;
    this.#notify = notify;
    this.#canExpire = canExpire;
  }

  /** A secret has changed. `""`: anything may have changed. @returns when the kernel knows */
  async changed(path: string): Promise<void> {
    await Promise.all(this.#changed(path));
  }

  #changed(path: string): Promise<void>[] {
    if (path === "") return this.#expireAll(this.#root);
    const done: Promise<void>[] = [];
    const names = path.split("/");
    const last = names.pop() ?? "";
    let directory = this.#root;
    for (const name of names) {
      const child = directory.children.get(name);
      if (child?.kind !== "directory") {
        // The kernel may know that the folder does not exist, which is no longer true.
        return [...done, this.expire(directory, name)];
      }
      // With its last secret the folder is gone.
      if (this.#canExpire()) done.push(this.expire(directory, name));
      directory = child;
    }
    this.#markReplaced(directory.children.get(`${last}.json`));
    const fields = directory.children.get(`${last}.d`);
    if (fields?.kind === "directory") for (const each of fields.children.values()) this.#markReplaced(each);
    if (fields?.kind === "directory" && fields.place.kind === "fields") done.push(...this.#expireAll(fields));
    else done.push(this.expire(directory, `${last}.d`));
    return [...done, this.expire(directory, `${last}.json`)];
  }

  #markReplaced(node: MountNode | undefined): void {
    if (node?.kind === "file") node.isReplaced = true;
  }

  /** A name leads to something else. @param directory path below the mountpoint, without a slash at either end */
  async renamed(directory: string, name: string): Promise<void> {
    let node = this.#root;
    for (const each of directory === "" ? [] : directory.split("/")) {
      const child = node.children.get(each);
      if (child?.kind !== "directory") return;
      node = child;
    }
    await this.expire(node, name);
  }

  /** Rendered files have changed. */
  renderedChanged(): void {
    const isRendered = (node: MountNode): boolean => node.kind === "file" && node.source.kind === "rendered";
    void Promise.all(this.#expireAll(this.#root, isRendered));
  }

  /** There may be a rendered file now where the kernel knows that there is none. */
  renderedAdded(path: string): void {
    let directory = this.#root;
    for (const name of path.split("/")) {
      const child = directory.children.get(name);
      if (child?.kind !== "directory") {
        void this.expire(directory, name);
        return;
      }
      directory = child;
    }
  }

  expire(directory: DirectoryNode, name: string): Promise<void> {
    return this.#notify(encodeInvalidEntry(directory.id, name, this.#canExpire()));
  }

  #expireAll(directory: DirectoryNode, which: (node: MountNode) => boolean = () => true): Promise<void>[] {
    const done: Promise<void>[] = [];
    for (const [name, child] of directory.children) {
      // Without the flag the kernel would also drop what is mounted below a directory.
      if (which(child) && (child.kind === "file" || this.#canExpire()))
        done.push(this.expire(directory, name));
      if (child.kind === "directory") done.push(...this.#expireAll(child, which));
    }
    return done;
  }
}
