/** Messages of finished actions. The browser requests one by name, so that an address cannot put words on a page. */
const ANNOUNCEMENTS = {
  copied: "Copied to the clipboard of this host.",
  token_copied: "The store token is on the clipboard of this host.",
  created: "Created.",
  deleted: "Deleted, with every version.",
  paused: "Paused: the next cycle leaves its file alone.",
  resumed: "Resumed: the next cycle syncs it.",
  synced: "The cycle is done: the state below is the newest.",
  restored: "The old version is the newest again.",
} as const;
export type Announcement = keyof typeof ANNOUNCEMENTS;

/** The words for a name, if it is one. */
export function announcementText(name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(ANNOUNCEMENTS, name)
    ? ANNOUNCEMENTS[name as Announcement]
    : undefined;
}
