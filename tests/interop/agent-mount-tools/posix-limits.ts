/** Tests of pjdfstest that fail on the mount, with the reason. All others have to pass. */
export const POSIX_LIMITS: readonly { readonly tests: RegExp; readonly reason: string }[] = [
  {
    tests:
      /::(?:symlink|fifo|socket|char|block)$|^(?:link|symlink|mkfifo|mknod)::|::e?loop|_symlink$|^open::(?:open_nofollow|socket_error|fifo_nonblock_wronly)$|::(?:to_multiply_linked|device_files)::/,
    reason: "links, devices, FIFOs and sockets do not exist on the mount",
  },
  {
    tests:
      /^chmod::(?:change_perm|update_ctime|clear_isgid_bit)|::(?:permission_bits_from_mode|uid_gid_eq_euid_egid)$|::preserve_metadata::|^unlink::update_ctime_success::/,
    reason: "chmod is ignored and chown is refused",
  },
  {
    tests:
      /::(?:failed_chmod_unchanged_ctime|unchanged_ctime_failed)::|^ftruncate::affected_create_flags_only$|^rename::write_access_required_subdir$/,
    reason: "another user has no access",
  },
  {
    tests:
      /^utimensat::|::(?:changed_time_fields_success|changed_parent_time_success|changed_time_parent_success)$|^unlink::update_mtime_ctime_success_folder::/,
    reason: "times are those of versions and of writes, and nobody can set them",
  },
  { tests: /::enametoolong_path$/, reason: "the store has no paths of 4 KiB" },
  { tests: /^open::interact_2gb$/, reason: "files in memory have up to 8 MiB in all" },
  {
    tests: /^rename::updates_link_parent$|^unlink::open_file_not_freed$/,
    reason: "links are not counted",
  },
];
