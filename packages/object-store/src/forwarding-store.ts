import type { ObjectStore } from "./object-store.ts";

/** An object store that passes its calls on to another one. A subclass decides when, and to which. */
export abstract class ForwardingStore implements ObjectStore {
  readonly get: ObjectStore["get"] = async (...args) => this.forward((store) => store.get(...args));
  readonly head: ObjectStore["head"] = async (...args) => this.forward((store) => store.head(...args));
  readonly put: ObjectStore["put"] = async (...args) => this.forward((store) => store.put(...args));
  readonly putLarge: ObjectStore["putLarge"] = async (...args) =>
    this.forward((store) => store.putLarge(...args));
  readonly delete: ObjectStore["delete"] = async (...args) => this.forward((store) => store.delete(...args));
  readonly list: ObjectStore["list"] = async (...args) => this.forward((store) => store.list(...args));
  readonly listUploads: ObjectStore["listUploads"] = async (...args) =>
    this.forward((store) => store.listUploads(...args));
  readonly abortUpload: ObjectStore["abortUpload"] = async (...args) =>
    this.forward((store) => store.abortUpload(...args));

  abstract now(): number;
  abstract close(): Promise<void>;
  /** Makes one call. @throws ObjectStoreError */
  protected abstract forward<T>(call: (store: ObjectStore) => Promise<T>): Promise<T>;
}
