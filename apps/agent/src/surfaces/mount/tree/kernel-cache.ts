import { encodeInvalidEntry } from "@devplat/fuse-protocol";
import type { DirectoryNode, MountNode } from "./nodes.ts";

/** Ends the time for which the kernel uses names without a lookup, after a change. Open files are not touched. */
export class KernelCache {
  readonly #root: DirectoryNode;
  readonly #notify: (notification: Buffer) => void;
  readonly #canExpire: () => boolean;

  /** @param canExpire whether the kernel can keep what is mounted below a name (7.38) */
  constructor(root: DirectoryNode, notify: (notification: Buffer) => void, canExpire: () => boolean) {
    this.#root = root;
    this.#notify = notify;
    this.#canExpire = canExpire;
  }

  /** A secret has changed. `""`: anything may have changed. */
  changed(path: string): void {
    if (path === "") {
      this.#expireAll(this.#root);
      return;
    }
    const names = path.split("/");
    const last = names.pop() ?? "";
    let directory = this.#root;
    for (const name of names) {
      const child = directory.children.get(name);
      if (child?.kind !== "directory") {
        // The kernel may know that the folder does not exist, which is no longer true.
        this.expire(directory, name);
        return;
      }
      // With its last secret the folder is gone.
      if (this.#canExpire()) this.expire(directory, name);
      directory = child;
    }
    const fields = directory.children.get(`${last}.d`);
    if (fields?.kind === "directory" && fields.place.kind === "fields") this.#expireAll(fields);
    else this.expire(directory, `${last}.d`);
    this.expire(directory, `${last}.json`);
  }

  /** Rendered files have changed. */
  renderedChanged(): void {
    const isRendered = (node: MountNode): boolean => node.kind === "file" && node.source.kind === "rendered";
    this.#expireAll(this.#root, isRendered);
  }

  /** There may be a rendered file now where the kernel knows that there is none. */
  renderedAdded(path: string): void {
    let directory = this.#root;
    for (const name of path.split("/")) {
      const child = directory.children.get(name);
      if (child?.kind !== "directory") {
        this.expire(directory, name);
        return;
      }
      directory = child;
    }
  }

  expire(directory: DirectoryNode, name: string): void {
    this.#notify(encodeInvalidEntry(directory.id, name, this.#canExpire()));
  }

  #expireAll(directory: DirectoryNode, which: (node: MountNode) => boolean = () => true): void {
    for (const [name, child] of directory.children) {
      // Without the flag the kernel would also drop what is mounted below a directory.
      if (which(child) && (child.kind === "file" || this.#canExpire())) this.expire(directory, name);
      if (child.kind === "directory") this.#expireAll(child, which);
    }
  }
}
