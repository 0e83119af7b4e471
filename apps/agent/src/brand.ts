/** The one place with the names that carry the daemon's brand. */
export const BRAND = {
  command: "agent",
  environmentPrefix: "AGENT",
  /** Folder below the XDG base folders, and `<daemon-dir>` of the documents. */
  folder: "daemon",
  tokenFile: ".daemon-token",
} as const;
