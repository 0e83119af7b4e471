/** Messages of finished actions. The browser requests one by name, so that an address cannot put words on a page. */
const ANNOUNCEMENTS = {
  copied: "Copied to the clipboard of this host.",
  mounted: "Mounted.",
  unmounted: "Unmounted, until you mount it again or the daemon starts again.",
  token_copied: "The store token is on the clipboard of this host.",
  created: "Created.",
  deleted: "Deleted, with every version.",
  paused: "Paused: the next cycle leaves its file alone.",
  resumed: "Resumed: the next cycle syncs it.",
  synced: "The cycle is done: the state below is the newest.",
  restored: "The old version is the newest again.",
  remote_added: "Added. The daemon connects now.",
  remote_saved: "Saved. The daemon connects with the new settings.",
  remote_unchanged: "Nothing was changed.",
  remote_enabled: "Enabled. The daemon connects now.",
  remote_disabled: "Disabled. The connection is closed.",
  remote_deleted: "The remote is deleted.",
  remote_retried: "The daemon tries again now.",
  host_key_pinned: "The host key is pinned. The daemon connects now.",
  tokens_revoked: "The lent tokens are revoked.",
  consent_given: "Allowed. The host gets its token when it asks again, in a moment.",
  consent_refused: "Refused. The host is not asked about for 10 minutes.",
  keys_refreshed: "The keys were looked up again.",
  keys_shown: "Hidden keys are shown again.",
  key_unlocked: "The key is unlocked.",
  answer_given: "The answer is given.",
  answer_refused: "Refused.",
} as const;
export type Announcement = keyof typeof ANNOUNCEMENTS;

/** The words for a name, if it is one. */
export function announcementText(name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(ANNOUNCEMENTS, name)
    ? ANNOUNCEMENTS[name as Announcement]
    : undefined;
}
