/** Use cases of container volumes, for the API and the command line. */
export interface VolumeControl {
  /**
   * Drops all mounts of a volume whose engine has forgotten them, and removes its files.
   * @returns the number of mounts @throws VolumeError `volume_unknown` | `content_unwritable`
   */
  release(name: string): Promise<number>;
}
