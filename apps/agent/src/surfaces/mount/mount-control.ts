/** Use cases of the filesystem mount, for the API, the pages and the command line. */
export interface MountControl {
  /** Mounts, after `unmount` or a failure. Does nothing while it is mounted. @throws AgentError `mount_refused` | `mount_failed` */
  mount(): Promise<void>;
  /**
   * Stores what can be stored, and unmounts until `mount` or the next start.
   *
   * @param lazy also while files are open: it disappears now, and ends with the last of them
   * @throws AgentError `mount_failed` while files are open, and after other failures; `mount_unsaved` if texts would be lost
   */
  unmount(lazy: boolean): Promise<void>;
}
